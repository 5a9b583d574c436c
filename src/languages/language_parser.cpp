#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "languages/embedded.h"
#include "languages/language.h"

namespace llm_sandbox {
namespace {

using nlohmann::json;

/// Takes the fields out of one JSON object. Keeps the first complaint, with the path of the field; after it every
/// answer is empty, so that the caller reads straight through and asks once at the end.
class Fields {
 public:
  Fields(const json& object, std::string path, std::optional<Error>& complaint)
      : object_(object), path_(std::move(path)), complaint_(complaint) {}

  void complain(const std::string& field, const std::string& what) {
    if (!complaint_)
      complaint_ = Error{ErrorCode::kInvalidArgument, (path_.empty() ? field : path_ + "." + field) + ": " + what};
  }

  /// A field that may be absent: null then.
  const json* optional(const std::string& field, json::value_t type) {
    known_.push_back(field);
    const auto value = object_.find(field);
    if (value == object_.end()) return nullptr;
    if (value->type() == type) return &*value;
    complain(field, "expected " + std::string(json(type).type_name()) + ", found " + value->type_name());
    return nullptr;
  }

  const json* required(const std::string& field, json::value_t type) {
    const json* value = optional(field, type);
    if (value == nullptr) complain(field, "missing");
    return value;
  }

  std::string text(const std::string& field) {
    const json* value = required(field, json::value_t::string);
    if (value != nullptr && value->get_ref<const std::string&>().empty()) complain(field, "must not be empty");
    return value != nullptr ? value->get<std::string>() : std::string();
  }

  std::string optional_text(const std::string& field) {
    const json* value = optional(field, json::value_t::string);
    return value != nullptr ? value->get<std::string>() : std::string();
  }

  bool flag(const std::string& field) {
    const json* value = required(field, json::value_t::boolean);
    return value != nullptr && value->get<bool>();
  }

  std::vector<std::string> texts(const std::string& field) {
    const json* value = required(field, json::value_t::array);
    if (value != nullptr && value->empty()) complain(field, "must not be empty");
    return strings_of(field, value);
  }

  std::vector<std::string> optional_texts(const std::string& field) {
    return strings_of(field, optional(field, json::value_t::array));
  }

  /// To be called last: a field that nobody asked for is a typing error.
  void refuse_unknown() {
    for (const auto& [field, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), field) != known_.end()) continue;
      const std::string nearest = nearest_name(field, known_);
      complain(field, "unknown field" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
    }
  }

 private:
  std::vector<std::string> strings_of(const std::string& field, const json* array) {
    std::vector<std::string> result;
    if (array == nullptr) return result;
    for (size_t i = 0; i < array->size(); ++i) {
      const json& item = (*array)[i];
      if (item.is_string())
        result.push_back(item.get<std::string>());
      else
        complain(field + "[" + std::to_string(i) + "]", std::string("expected string, found ") + item.type_name());
    }
    return result;
  }

  const json& object_;
  std::string path_;
  std::optional<Error>& complaint_;
  std::vector<std::string> known_;
};

std::string at(const std::string& field, size_t index) { return field + "[" + std::to_string(index) + "]"; }

bool all_of(std::string_view text, bool (*allowed)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

/// The first "{word}" in `text` that is not among `known`; empty if there is none.
std::string unknown_placeholder(const std::string& text, const std::vector<std::string>& known) {
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open);
    if (close == std::string::npos) return {};
    std::string word = text.substr(open, close - open + 1);
    if (all_of(std::string_view(word).substr(1, word.size() - 2), is_lower) &&
        std::find(known.begin(), known.end(), word) == known.end())
      return word;
  }
  return {};
}

void check_placeholders(Fields& fields, const std::string& field, const std::string& text,
                        const std::vector<std::string>& known) {
  const std::string unknown = unknown_placeholder(text, known);
  if (!unknown.empty()) fields.complain(field, "unknown placeholder " + unknown + "; known: " + join(known, ", "));
}

const std::vector<std::string>& run_placeholders() {
  static const std::vector<std::string> known{"{runtime}", "{file}", "{runner}"};
  return known;
}

std::vector<std::string> parse_run(Fields& fields, bool runnable) {
  auto run = runnable ? fields.texts("run") : fields.optional_texts("run");
  for (size_t i = 0; i < run.size(); ++i) check_placeholders(fields, at("run", i), run[i], run_placeholders());
  const bool names_file =
      std::any_of(run.begin(), run.end(), [](const auto& text) { return text.find("{file}") != std::string::npos; });
  if (runnable && !names_file) fields.complain("run", "must hold {file}");
  return run;
}

std::vector<std::string> parse_environment(Fields& fields) {
  std::vector<std::string> result;
  const json* object = fields.optional("environment", json::value_t::object);
  if (object == nullptr) return result;
  for (const auto& [name, value] : object->items()) {
    const std::string field = "environment." + name;
    const auto allowed = [](char c) { return is_lower(c) || is_digit(c) || c == '_' || (c >= 'A' && c <= 'Z'); };
    if (!all_of(name, allowed) || is_digit(name[0])) fields.complain(field, "not a name of an environment variable");
    if (!value.is_string()) {
      fields.complain(field, std::string("expected string, found ") + value.type_name());
      continue;
    }
    const auto& text = value.get_ref<const std::string&>();
    if (text.find('\0') != std::string::npos) fields.complain(field, "must not hold a zero byte");
    check_placeholders(fields, field, text, run_placeholders());
    result.push_back(name + "=" + text);
  }
  return result;
}

std::vector<RunnerFile> parse_runner_files(Fields& fields) {
  std::vector<RunnerFile> result;
  const auto paths = fields.optional_texts("runner_files");
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto content = embedded_script(paths[i]);
    if (!content)
      fields.complain(at("runner_files", i), "there is no runner " + paths[i]);
    else
      result.push_back({paths[i].substr(paths[i].rfind('/') + 1), std::string(*content)});
  }
  return result;
}

/// As one argument for a describing script: {"name": "content"}.
std::string as_json(const std::vector<RunnerFile>& files) {
  json object = json::object();
  for (const auto& file : files) object[file.name] = file.content;
  return object.dump();
}

std::vector<std::string> parse_describe(Fields& fields, bool runnable, const std::vector<RunnerFile>& runner_files) {
  auto argv = runnable ? fields.texts("describe") : fields.optional_texts("describe");
  const std::string path = runnable ? fields.text("describe_script") : fields.optional_text("describe_script");
  const auto script = embedded_script(path);
  if (!path.empty() && !script) fields.complain("describe_script", "there is no script " + path);
  for (size_t i = 0; i < argv.size(); ++i) {
    check_placeholders(fields, at("describe", i), argv[i], {"{script}", "{runner_files}"});
    if (argv[i] == "{script}") argv[i] = std::string(script.value_or(""));
    if (argv[i] == "{runner_files}") argv[i] = as_json(runner_files);
  }
  return argv;
}

std::vector<LanguageExample> parse_examples(Fields& fields, std::optional<Error>& complaint) {
  std::vector<LanguageExample> result;
  const json* array = fields.required("examples", json::value_t::array);
  if (array == nullptr) return result;
  if (array->empty()) fields.complain("examples", "must not be empty");
  for (size_t i = 0; i < array->size(); ++i) {
    if (!(*array)[i].is_object()) {
      fields.complain(at("examples", i), std::string("expected object, found ") + (*array)[i].type_name());
      continue;
    }
    Fields example((*array)[i], at("examples", i), complaint);
    result.push_back({example.text("title"), example.text("description"), join(example.texts("code"), "\n") + "\n"});
    example.refuse_unknown();
  }
  return result;
}

void check_places(Fields& fields, const std::vector<std::string>& places) {
  for (size_t i = 0; i < places.size(); ++i)
    if (!places[i].starts_with('/') && !places[i].starts_with("~/"))
      fields.complain(at("well_known_places", i), "must begin with / or ~/");
}

void check_names(Fields& fields, const Language& language) {
  const auto allowed = [](char c) { return is_lower(c) || is_digit(c) || c == '+' || c == '#' || c == '-'; };
  if (!all_of(language.name, allowed)) fields.complain("name", "must be lower-case letters, digits, +, # or -");
  for (size_t i = 0; i < language.aliases.size(); ++i)
    if (!all_of(language.aliases[i], allowed))
      fields.complain(at("aliases", i), "must be lower-case letters, digits, +, # or -");
  if (!is_plain_file_name(language.file_name)) fields.complain("file_name", "must be a plain file name");
  for (size_t i = 0; i < language.runtime_names.size(); ++i)
    if (!is_plain_file_name(language.runtime_names[i]))
      fields.complain(at("runtime_names", i), "must be a plain file name");
  const auto version_part = [](char c) { return is_digit(c) || c == '.'; };
  if (!language.minimum_version.empty() && !all_of(language.minimum_version, version_part))
    fields.complain("minimum_version", "must be numbers with dots between");
}

}  // namespace

Result<Language> LanguageCatalog::parse(std::string_view json_text) {
  json document;
  try {
    document = json::parse(json_text);
  } catch (const json::exception& error) {
    return fail(ErrorCode::kInvalidArgument, std::string("not valid JSON: ") + error.what());
  }
  if (!document.is_object())
    return fail(ErrorCode::kInvalidArgument, std::string("expected object, found ") + document.type_name());

  std::optional<Error> complaint;
  Fields fields(document, "", complaint);
  Language language;
  language.name = fields.text("name");
  language.title = fields.text("title");
  language.aliases = fields.optional_texts("aliases");
  language.runnable = fields.flag("runnable");
  language.file_name = fields.text("file_name");
  language.file_endings = fields.optional_texts("file_endings");
  language.run = parse_run(fields, language.runnable);
  language.environment = parse_environment(fields);
  language.runner_files = parse_runner_files(fields);
  language.out_of_memory_marks = fields.optional_texts("out_of_memory_marks");
  language.runtime_names = fields.texts("runtime_names");
  language.well_known_places = fields.optional_texts("well_known_places");
  language.minimum_version = fields.optional_text("minimum_version");
  language.describe = parse_describe(fields, language.runnable, language.runner_files);
  language.how_to_install = fields.text("how_to_install");
  language.package_manager = fields.text("package_manager");
  language.use_cases = fields.texts("use_cases");
  language.visualization_support = fields.flag("visualization_support");
  language.examples = parse_examples(fields, complaint);
  check_names(fields, language);
  check_places(fields, language.well_known_places);
  fields.refuse_unknown();
  if (complaint) return fail(std::move(*complaint));
  return language;
}

}  // namespace llm_sandbox
