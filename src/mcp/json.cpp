#include "mcp/json.h"

#include <nlohmann/json.hpp>
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

}  // namespace

Result<Json> parse_json(std::string_view text) {
  BoundedBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return fail(builder.take_error());
  return builder.take_root();
}

}  // namespace llm_sandbox::mcp
