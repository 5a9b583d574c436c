#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mcp/json.h"

namespace llm_sandbox::mcp {

/// A string. Without a default it is required.
struct TextArgument {
  std::string name;
  std::string description;
  size_t max_bytes = 0;
  std::optional<std::string> default_value = std::nullopt;
};

/// An array of strings, by default empty. A string that holds such an array as JSON is accepted too: models send it.
struct TextListArgument {
  std::string name;
  std::string description;
  size_t max_items = 0;
  size_t max_item_bytes = 0;
};

/// A whole number of seconds, at least 1. "30" and 30.0 are accepted too.
struct SecondsArgument {
  std::string name;
  std::string description;
  std::chrono::seconds default_value{0};
};

using Problems = std::vector<std::string>;

/// Decode one argument into `out`, or the default if `value` is null (absent and JSON null are the same). What is wrong
/// is added to `problems`, each as "path: sentence".
void decode_argument(const TextArgument& argument, const Json* value, std::string& out, Problems& problems);
void decode_argument(const TextListArgument& argument, const Json* value, std::vector<std::string>& out,
                     Problems& problems);
void decode_argument(const SecondsArgument& argument, const Json* value, std::chrono::milliseconds& out,
                     Problems& problems);

/// An argument as its JSON Schema has it.
struct ArgumentSchema {
  std::string name;
  std::string schema;
  bool required = false;
};
ArgumentSchema schema_of(const TextArgument& argument);
ArgumentSchema schema_of(const TextListArgument& argument);
ArgumentSchema schema_of(const SecondsArgument& argument);

/// The schema of an object with these members.
std::string object_schema(const std::vector<ArgumentSchema>& arguments);
/// The member of that name; null when it is absent or JSON null, or `object` is no object.
const Json* find_argument(const Json& object, const std::string& name);
/// Whether it is an object or nothing at all; else one problem.
void check_is_object(const Json& arguments, Problems& problems);
/// A note for each member that no argument is called by, with the nearest name; a few at most.
std::vector<std::string> unknown_argument_notes(const Json& object, const std::vector<ArgumentSchema>& arguments);

template <typename Arguments>
struct DecodedArguments {
  Arguments value;
  Problems problems;               ///< of all arguments; when there are any, `value` is of no use
  std::vector<std::string> notes;  ///< what was ignored
};

/// The arguments of a tool, each described once: the schema that clients see and the decoding both come from here.
///   ArgumentTable<GreetArguments> table;
///   table.add(TextArgument{"name", "Whom to greet", 100}, &GreetArguments::name);
template <typename Arguments>
class ArgumentTable {
 public:
  template <typename Argument, typename Value>
  ArgumentTable& add(Argument argument, Value Arguments::*member) {
    schemas_.push_back(schema_of(argument));
    decoders_.push_back(
        [argument = std::move(argument), member](const Json& object, Arguments& out, Problems& problems) {
          decode_argument(argument, find_argument(object, argument.name), out.*member, problems);
        });
    return *this;
  }

  std::string schema() const { return object_schema(schemas_); }

  DecodedArguments<Arguments> decode(const Json& object) const {
    DecodedArguments<Arguments> decoded;
    check_is_object(object, decoded.problems);
    if (!decoded.problems.empty()) return decoded;
    for (const auto& decode_one : decoders_) decode_one(object, decoded.value, decoded.problems);
    decoded.notes = unknown_argument_notes(object, schemas_);
    return decoded;
  }

 private:
  std::vector<ArgumentSchema> schemas_;
  std::vector<std::function<void(const Json&, Arguments&, Problems&)>> decoders_;
};

}  // namespace llm_sandbox::mcp
