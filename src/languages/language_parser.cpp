#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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

  bool optional_flag(const std::string& field, bool otherwise) {
    const json* value = optional(field, json::value_t::boolean);
    return value != nullptr ? value->get<bool>() : otherwise;
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

using Placeholders = std::vector<std::string>;

/// What stands for something in every command of a language.
const Placeholders& common_placeholders() {
  static const Placeholders known{"{runtime}", "{bin}", "{runner}", "{prepared}"};
  return known;
}

Placeholders and_also(Placeholders known, const Placeholders& more) {
  known.insert(known.end(), more.begin(), more.end());
  return known;
}

const Placeholders& run_placeholders() {
  static const Placeholders known = and_also(common_placeholders(), {"{file}", "{build}", "{memory}"});
  return known;
}

const Placeholders& package_placeholders() {
  static const Placeholders known = and_also(run_placeholders(), {"{packages}", "{tool}"});
  return known;
}

std::vector<std::string> parse_argv(Fields& fields, const std::string& field, const Placeholders& known) {
  auto argv = fields.optional_texts(field);
  for (size_t i = 0; i < argv.size(); ++i) check_placeholders(fields, at(field, i), argv[i], known);
  return argv;
}

bool holds(const std::vector<std::string>& argv, std::string_view placeholder) {
  return std::any_of(argv.begin(), argv.end(),
                     [&](const auto& text) { return text.find(placeholder) != std::string::npos; });
}

bool is_variable_name(const std::string& name) {
  const auto allowed = [](char c) { return is_lower(c) || is_digit(c) || c == '_' || (c >= 'A' && c <= 'Z'); };
  return all_of(name, allowed) && !is_digit(name[0]);
}

/// An object of texts, in its order.
std::vector<std::pair<std::string, std::string>> parse_texts_by_name(Fields& fields, const std::string& field,
                                                                     const Placeholders& known) {
  std::vector<std::pair<std::string, std::string>> result;
  const json* object = fields.optional(field, json::value_t::object);
  if (object == nullptr) return result;
  for (const auto& [name, value] : object->items()) {
    const std::string where = field + "." + name;
    if (!value.is_string()) {
      fields.complain(where, std::string("expected string, found ") + value.type_name());
      continue;
    }
    const auto& text = value.get_ref<const std::string&>();
    if (text.find('\0') != std::string::npos) fields.complain(where, "must not hold a zero byte");
    check_placeholders(fields, where, text, known);
    result.emplace_back(name, text);
  }
  return result;
}

std::vector<std::string> parse_environment(Fields& fields, const std::string& field, const Placeholders& known) {
  std::vector<std::string> result;
  for (const auto& [name, text] : parse_texts_by_name(fields, field, known)) {
    if (!is_variable_name(name)) fields.complain(field + "." + name, "not a name of an environment variable");
    result.push_back(name + "=" + text);
  }
  return result;
}

/// "512 MiB", "1.5 GiB".
std::optional<uint64_t> parse_bytes(Fields& fields, const std::string& field) {
  const std::string text = fields.optional_text(field);
  if (text.empty()) return std::nullopt;
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  const std::string_view unit = trim(rest);
  const uint64_t factor = unit == "MiB" ? uint64_t{1} << 20 : unit == "GiB" ? uint64_t{1} << 30 : 0;
  if (factor == 0 || !(number > 0) || number > 1024 * 1024) {
    fields.complain(field, "must be a size such as \"512 MiB\" or \"1 GiB\"");
    return std::nullopt;
  }
  return static_cast<uint64_t>(number * static_cast<double>(factor));
}

LimitOverrides parse_limits(Fields& fields, std::optional<Error>& complaint) {
  LimitOverrides result;
  const json* object = fields.optional("limits", json::value_t::object);
  if (object == nullptr) return result;
  Fields limits(*object, "limits", complaint);
  result.memory_bytes = parse_bytes(limits, "memory");
  result.disk_bytes = parse_bytes(limits, "disk");
  if (const json* processes = limits.optional("processes", json::value_t::number_unsigned)) {
    const auto number = processes->get<uint64_t>();
    if (number < 8 || number > 32768) limits.complain("processes", "must be from 8 to 32768");
    result.processes = static_cast<uint32_t>(number);
  }
  limits.refuse_unknown();
  return result;
}

std::optional<PackageManager> parse_packages(Fields& fields, std::optional<Error>& complaint) {
  const json* object = fields.optional("packages", json::value_t::object);
  if (object == nullptr) return std::nullopt;
  Fields packages(*object, "packages", complaint);
  PackageManager result;
  result.name_pattern = packages.text("name_pattern");
  if (const RE2 pattern(result.name_pattern, RE2::Quiet); !pattern.ok())
    packages.complain("name_pattern", "not a regular expression: " + pattern.error());
  result.names_fold = packages.optional_flag("names_fold", false);
  result.installed_serves = packages.optional_flag("installed_serves", true);
  result.tool_names = packages.optional_texts("tool_names");
  result.how_to_get_tool = packages.optional_text("how_to_get_tool");
  result.install = parse_argv(packages, "install", and_also(package_placeholders(), {"{names}"}));
  if (!holds(result.install, "{names}")) packages.complain("install", "must hold {names}");
  result.settings = packages.optional_texts("settings");
  result.settings_folders = packages.optional_texts("settings_folders");
  result.settings_files = packages.optional_texts("settings_files");
  for (size_t i = 0; i < result.settings_files.size(); ++i)
    if (!result.settings_files[i].starts_with('/') && !result.settings_files[i].starts_with("~/"))
      packages.complain(at("settings_files", i), "must begin with / or ~/");
  result.shown = packages.optional_texts("shown");
  for (size_t i = 0; i < result.shown.size(); ++i)
    if (!result.shown[i].starts_with('/')) packages.complain(at("shown", i), "must begin with /");
  result.install_environment = parse_environment(packages, "install_environment", package_placeholders());
  result.environment = parse_environment(packages, "environment", package_placeholders());
  result.compile = parse_argv(packages, "compile", package_placeholders());
  result.run = parse_argv(packages, "run", package_placeholders());
  result.links = parse_texts_by_name(packages, "links", package_placeholders());
  for (const auto& [name, target] : result.links)
    if (!is_plain_file_name(name)) packages.complain("links." + name, "must be a plain file name");
  packages.refuse_unknown();
  return result;
}

/// One that is not built in lies in the user's own folder.
std::optional<std::string> script_of(const std::string& path, const std::string& folder) {
  if (const auto content = embedded_script(path)) return std::string(*content);
  if (folder.empty()) return std::nullopt;
  std::ifstream stream(path.starts_with('/') ? path : folder + "/" + path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<RunnerFile> parse_runner_files(Fields& fields, const std::string& folder) {
  std::vector<RunnerFile> result;
  const auto paths = fields.optional_texts("runner_files");
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto content = script_of(paths[i], folder);
    if (!content)
      fields.complain(at("runner_files", i), "there is no runner " + paths[i]);
    else
      result.push_back({paths[i].substr(paths[i].rfind('/') + 1), *content});
  }
  return result;
}

/// As one argument for a describing script: {"name": "content"}.
std::string as_json(const std::vector<RunnerFile>& files) {
  json object = json::object();
  for (const auto& file : files) object[file.name] = file.content;
  return object.dump();
}

std::vector<std::string> parse_describe(Fields& fields, const std::vector<RunnerFile>& runner_files,
                                        const std::string& folder) {
  auto argv = parse_argv(fields, "describe", {"{candidate}", "{script}", "{runner_files}"});
  const std::string path = fields.optional_text("describe_script");
  const auto script = path.empty() ? std::nullopt : script_of(path, folder);
  if (!path.empty() && !script) fields.complain("describe_script", "there is no script " + path);
  for (auto& argument : argv) {
    if (argument == "{script}") argument = script.value_or("");
    if (argument == "{runner_files}") argument = as_json(runner_files);
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
  for (const auto& [name, file] : language.file_names) {
    if (!all_of(name, allowed)) fields.complain("file_names." + name, "must be lower-case letters, digits, +, # or -");
    if (!is_plain_file_name(file)) fields.complain("file_names." + name, "must be a plain file name");
  }
  for (size_t i = 0; i < language.runtime_names.size(); ++i)
    if (!is_plain_file_name(language.runtime_names[i]))
      fields.complain(at("runtime_names", i), "must be a plain file name");
  const auto version_part = [](char c) { return is_digit(c) || c == '.'; };
  if (!language.minimum_version.empty() && !all_of(language.minimum_version, version_part))
    fields.complain("minimum_version", "must be numbers with dots between");
}

void check_marks(Fields& fields, const std::vector<std::string>& marks) {
  for (size_t i = 0; i < marks.size(); ++i)
    if (const RE2 pattern(marks[i], RE2::Quiet); !pattern.ok())
      fields.complain(at("out_of_memory_marks", i), "not a regular expression: " + pattern.error());
}

void check_commands(Fields& fields, const Language& language) {
  if (language.run.empty()) fields.complain("run", "missing");
  if (!holds(language.run, "{file}") && !holds(language.compile, "{file}"))
    fields.complain(language.compile.empty() ? "run" : "compile", "must hold {file}");
  if (language.describe.empty() == language.version.empty())
    fields.complain("describe", "either this or version is needed");
}

}  // namespace

Result<Language> LanguageCatalog::parse(std::string_view json_text, const std::string& folder) {
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
  language.file_name = fields.text("file_name");
  language.file_endings = fields.optional_texts("file_endings");
  language.file_names = parse_texts_by_name(fields, "file_names", {});
  language.compile = parse_argv(fields, "compile", run_placeholders());
  language.run = parse_argv(fields, "run", run_placeholders());
  language.environment = parse_environment(fields, "environment", run_placeholders());
  language.limits = parse_limits(fields, complaint);
  language.prepare = parse_argv(fields, "prepare", common_placeholders());
  language.packages = parse_packages(fields, complaint);
  language.runner_files = parse_runner_files(fields, folder);
  language.out_of_memory_marks = fields.optional_texts("out_of_memory_marks");
  language.runtime_names = fields.texts("runtime_names");
  language.well_known_places = fields.optional_texts("well_known_places");
  language.minimum_version = fields.optional_text("minimum_version");
  language.describe = parse_describe(fields, language.runner_files, folder);
  language.version = parse_argv(fields, "version", {"{candidate}"});
  language.how_to_install = fields.text("how_to_install");
  language.image = fields.optional_text("image");
  language.package_manager = fields.text("package_manager");
  language.use_cases = fields.texts("use_cases");
  language.visualization_support = fields.flag("visualization_support");
  language.examples = parse_examples(fields, complaint);
  check_names(fields, language);
  check_places(fields, language.well_known_places);
  check_commands(fields, language);
  check_marks(fields, language.out_of_memory_marks);
  fields.refuse_unknown();
  if (complaint) return fail(std::move(*complaint));
  return language;
}

}  // namespace llm_sandbox
