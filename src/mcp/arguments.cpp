#include "mcp/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "mcp/json_writer.h"

namespace llm_sandbox::mcp {
namespace {

constexpr size_t kMaxUnknownNotes = 5;
constexpr size_t kMaxNameInNote = 64;
constexpr double kMaxSeconds = 1e9;  ///< larger values mean the same and would overflow

std::string article_and_type(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::null:
      return "null";
    default:
      return "a number";
  }
}

std::string wrong_type(const std::string& path, std::string_view wanted, const Json& value) {
  return path + ": must be " + std::string(wanted) + ", not " + article_and_type(value);
}

std::string too_long(const std::string& path, size_t size, size_t max) {
  return path + ": is too long, " + format_bytes(size) + " where at most " + format_bytes(max) + " are allowed";
}

/// The list itself, or the one that a string holds; nullopt if it is neither.
std::optional<Json> as_list(const Json& value) {
  if (value.is_array()) return value;
  if (!value.is_string()) return std::nullopt;
  Result<Json> parsed = parse_json(value.get_ref<const std::string&>());
  if (!parsed || !parsed->is_array()) return std::nullopt;
  return std::move(*parsed);
}

std::optional<double> as_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string_view text = trim(value.get_ref<const std::string&>());
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

void decode_argument(const TextArgument& argument, const Json* value, std::string& out, Problems& problems) {
  if (value == nullptr) {
    if (argument.default_value) {
      out = *argument.default_value;
    } else {
      problems.push_back(argument.name + ": is required but missing");
    }
    return;
  }
  if (!value->is_string()) {
    problems.push_back(wrong_type(argument.name, "a string", *value));
    return;
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > argument.max_bytes) {
    problems.push_back(too_long(argument.name, text.size(), argument.max_bytes));
    return;
  }
  out = text;
}

void decode_argument(const TextListArgument& argument, const Json* value, std::vector<std::string>& out,
                     Problems& problems) {
  out.clear();
  if (value == nullptr) return;
  const std::optional<Json> list = as_list(*value);
  if (!list) {
    problems.push_back(wrong_type(argument.name, "an array of strings", *value));
    return;
  }
  if (list->size() > argument.max_items) {
    problems.push_back(argument.name + ": has " + std::to_string(list->size()) + " items where at most " +
                       std::to_string(argument.max_items) + " are allowed");
    return;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& item = (*list)[i];
    const std::string path = argument.name + "[" + std::to_string(i) + "]";
    if (!item.is_string()) {
      problems.push_back(wrong_type(path, "a string", item));
    } else if (item.get_ref<const std::string&>().size() > argument.max_item_bytes) {
      problems.push_back(too_long(path, item.get_ref<const std::string&>().size(), argument.max_item_bytes));
    } else {
      out.push_back(item.get<std::string>());
    }
  }
}

void decode_argument(const SecondsArgument& argument, const Json* value, std::chrono::milliseconds& out,
                     Problems& problems) {
  if (value == nullptr) {
    out = argument.default_value;
    return;
  }
  const std::optional<double> seconds = as_number(*value);
  if (!seconds) {
    problems.push_back(wrong_type(argument.name, "a whole number of seconds", *value));
  } else if (!(*seconds > 0)) {
    problems.push_back(argument.name + ": must be greater than 0 seconds; leave it out for the default of " +
                       std::to_string(argument.default_value.count()));
  } else if (*seconds != std::floor(*seconds)) {
    problems.push_back(argument.name + ": must be a whole number of seconds");
  } else {
    out = std::chrono::seconds(static_cast<int64_t>(std::min(*seconds, kMaxSeconds)));
  }
}

ArgumentSchema schema_of(const TextArgument& argument) {
  ArgumentSchema result{argument.name, {}, !argument.default_value};
  JsonWriter writer(result.schema);
  writer.begin_object().key("type").string("string").key("description").string(argument.description);
  if (argument.default_value) writer.key("default").string(*argument.default_value);
  writer.end_object();
  return result;
}

ArgumentSchema schema_of(const TextListArgument& argument) {
  ArgumentSchema result{argument.name, {}, false};
  JsonWriter writer(result.schema);
  writer.begin_object().key("type").string("array").key("items").raw(R"({"type":"string"})");
  writer.key("maxItems").integer(static_cast<int64_t>(argument.max_items));
  writer.key("description").string(argument.description).key("default").raw("[]").end_object();
  return result;
}

ArgumentSchema schema_of(const SecondsArgument& argument) {
  ArgumentSchema result{argument.name, {}, false};
  JsonWriter writer(result.schema);
  writer.begin_object().key("type").string("integer").key("minimum").integer(1);
  writer.key("description").string(argument.description);
  writer.key("default").integer(argument.default_value.count()).end_object();
  return result;
}

std::string object_schema(const std::vector<ArgumentSchema>& arguments) {
  std::string schema;
  JsonWriter writer(schema);
  writer.begin_object().key("type").string("object");
  if (arguments.empty()) {
    writer.key("additionalProperties").boolean(false).end_object();
    return schema;
  }
  writer.key("properties").begin_object();
  for (const auto& argument : arguments) writer.key(argument.name).raw(argument.schema);
  writer.end_object();
  const auto is_required = [](const ArgumentSchema& argument) { return argument.required; };
  if (std::any_of(arguments.begin(), arguments.end(), is_required)) {
    writer.key("required").begin_array();
    for (const auto& argument : arguments)
      if (argument.required) writer.string(argument.name);
    writer.end_array();
  }
  writer.end_object();
  return schema;
}

const Json* find_argument(const Json& object, const std::string& name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

void check_is_object(const Json& arguments, Problems& problems) {
  if (arguments.is_null() || arguments.is_object()) return;
  problems.push_back(wrong_type("arguments", "an object", arguments));
}

std::vector<std::string> unknown_argument_notes(const Json& object, const std::vector<ArgumentSchema>& arguments) {
  std::vector<std::string> notes;
  if (!object.is_object()) return notes;
  std::vector<std::string> names;
  for (const auto& argument : arguments) names.push_back(argument.name);
  for (const auto& member : object.items()) {
    if (std::find(names.begin(), names.end(), member.key()) != names.end()) continue;
    if (notes.size() == kMaxUnknownNotes) break;
    const std::string name = sanitize_utf8(std::string_view(member.key()).substr(0, kMaxNameInNote));
    const std::string nearest = nearest_name(name, names);
    notes.push_back("There is no argument \"" + name + "\"; it was ignored." +
                    (nearest.empty() ? "" : " Did you mean \"" + nearest + "\"?"));
  }
  return notes;
}

}  // namespace llm_sandbox::mcp
