#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace llm_sandbox {

/// The part of CBOR (RFC 8949) that control frames need: one map from text keys to integers, booleans, strings and
/// lists of strings, all of definite length. Written by hand because it reads what hostile programs wrote: it never
/// recurses (nlohmann::json 3.11 overflows the stack on nested indefinite strings) and never allocates by a claimed
/// length. Strings may hold any bytes, so they are written as byte strings; text strings are read as well.
class CborWriter {
 public:
  explicit CborWriter(size_t fields);
  void field(std::string_view key, uint64_t value);
  void field(std::string_view key, int64_t value);
  void field(std::string_view key, bool value);
  void field(std::string_view key, std::string_view value);
  void field(std::string_view key, const std::vector<std::string>& value);
  std::string take() { return std::move(out_); }

 private:
  void head(unsigned major, uint64_t argument);
  void key(std::string_view name);
  void bytes(std::string_view value);

  std::string out_;
};

/// A decoded map; views into the bytes it was parsed from. Each get() is false if the key is missing or its value is of
/// another kind (or, for integers, out of the type's range).
class CborMap {
 public:
  /// kProtocol on anything but exactly one well-formed map of at most kMaxFields distinct keys.
  static Result<CborMap> parse(std::string_view bytes);
  static constexpr size_t kMaxFields = 64;

  bool get(std::string_view key, uint64_t& value) const;
  bool get(std::string_view key, int64_t& value) const;
  bool get(std::string_view key, bool& value) const;
  bool get(std::string_view key, std::string& value) const;
  bool get(std::string_view key, std::vector<std::string>& value) const;

 private:
  enum class Kind { kUnsigned, kNegative, kBool, kString, kList };
  struct Value {
    Kind kind = Kind::kBool;
    uint64_t number = 0;          ///< the integer (of kNegative: -1 - number), the boolean, or the list's length
    std::string_view bytes = {};  ///< the string, or the list's items as they were encoded
  };
  class Cursor;

  const Value* find(std::string_view key, Kind kind) const;

  std::map<std::string_view, Value> values_;
};

}  // namespace llm_sandbox
