#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llm_sandbox::mcp {

/// Appends JSON to a string as it is told, without building a tree: large output costs one copy. Commas, colons and
/// indentation are its affair, that the calls make sense is the caller's. Always yields valid UTF-8 without a raw
/// control character, so that a message without indentation is one line.
class JsonWriter {
 public:
  /// `indent` is the number of blanks a level; 0 writes everything on one line without blanks.
  explicit JsonWriter(std::string& out, size_t indent = 0) : out_(out), indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  /// Any bytes; each ill-formed part becomes U+FFFD.
  JsonWriter& string(std::string_view bytes);
  JsonWriter& integer(int64_t value);
  /// The shortest text that reads back as the same value; null for what JSON cannot say (NaN, infinities).
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value);
  /// A value that is JSON already.
  JsonWriter& raw(std::string_view json);
  /// A string that holds the bytes in base64 (RFC 4648 section 4, padded).
  JsonWriter& base64(std::string_view bytes);

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void before_value();
  void new_line();

  std::string& out_;
  const size_t indent_;
  std::vector<bool> has_items_;  ///< one for each open container
  bool after_key_ = false;
};

/// `bytes` as a JSON string, quotes included.
std::string json_string(std::string_view bytes);

}  // namespace llm_sandbox::mcp
