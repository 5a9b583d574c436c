#include "mcp/json.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llm_sandbox::mcp {
namespace {

/// Builds the tree from nlohmann's SAX events (its parser itself does not recurse) and stops at the bounds.
class BoundedBuilder {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    error_ = {ErrorCode::kProtocol, "not valid JSON: unexpected input at byte " + std::to_string(position)};
    return false;
  }

  Json take_root() { return std::move(root_); }
  Error take_error() { return std::move(error_); }

 private:
  bool add(Json value) { return place(std::move(value)) != nullptr; }

  bool open(Json container) {
    if (open_.size() == kMaxJsonDepth) {
      error_ = {ErrorCode::kTooLarge, "JSON nested deeper than " + std::to_string(kMaxJsonDepth) + " levels"};
      return false;
    }
    Json* placed = place(std::move(container));
    if (placed == nullptr) return false;
    open_.push_back(placed);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json* place(Json value) {
    if (++count_ > kMaxJsonValues) {
      error_ = {ErrorCode::kTooLarge, "JSON with more than " + std::to_string(kMaxJsonValues) + " values"};
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  Json root_;
  std::vector<Json*> open_;  ///< from the root down; a parent is not touched while its child is open
  std::string key_;
  size_t count_ = 0;
  Error error_{ErrorCode::kProtocol, "not valid JSON"};
};

/// The code unit of a \uXXXX escape at the start of `text`; nullopt for anything else.
std::optional<unsigned> code_unit(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  unsigned unit = 0;
  const auto [rest, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  if (error != std::errc() || rest != text.data() + 6) return std::nullopt;
  return unit;
}

/// Half of a surrogate pair alone, as JavaScript writes for a text that was cut in the middle of a character, becomes
/// U+FFFD: nlohmann's parser takes it for a syntax error, and the client would never get an answer under its id.
std::string repair_surrogates(std::string_view text) {
  const auto is_high = [](unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; };
  const auto is_low = [](unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; };
  std::string repaired(text);
  for (size_t at = repaired.find('\\'); at != std::string::npos; at = repaired.find('\\', at)) {
    const std::string_view rest = std::string_view(repaired).substr(at);
    const auto unit = code_unit(rest);
    if (!unit) {
      at += 2;  // an escaped backslash starts no escape of its own
      continue;
    }
    const bool pair = is_high(*unit) && is_low(code_unit(rest.substr(6)).value_or(0));
    if (!pair && (is_high(*unit) || is_low(*unit))) repaired.replace(at + 2, 4, "fffd");
    at += pair ? 12 : 6;
  }
  return repaired;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  BoundedBuilder builder;
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take_root();
  Error error = builder.take_error();
  if (error.code != ErrorCode::kProtocol) return fail(std::move(error));
  const std::string repaired = repair_surrogates(text);
  BoundedBuilder second;
  if (repaired == text || !Json::sax_parse(repaired.begin(), repaired.end(), &second)) return fail(std::move(error));
  return second.take_root();
}

}  // namespace llm_sandbox::mcp
