#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/deadline.h"
#include "base/process.h"
#include "base/text.h"
#include "languages/host_paths.h"
#include "languages/language.h"

namespace llm_sandbox {
namespace {

using nlohmann::json;

constexpr auto kKeepNotFound = std::chrono::seconds(5);
constexpr size_t kMaxDescription = 1 << 20;
constexpr size_t kMaxLibraries = 2000;
constexpr size_t kMaxPlaces = 32;

/// What a candidate says of itself (the JSON of src/languages/<name>/describe.*).
struct Description {
  std::string executable;
  std::string version;
  std::vector<std::string> places;
  std::vector<std::string> libraries;
  std::vector<RunnerFile> files;
  bool is_virtual = false;  ///< works only under the name by which it was started
};

/// Where and under which conditions to look.
struct Surroundings {
  std::function<bool(const std::string&)> can_show;
  std::string path_list;
  std::string home;
  std::chrono::milliseconds patience;
};

std::string last_line(std::string_view text) {
  text = trim(text);
  const size_t newline = text.rfind('\n');
  return sanitize_utf8(newline == std::string_view::npos ? text : text.substr(newline + 1)).substr(0, 300);
}

std::vector<std::string> strings_in(const json& object, const char* field, size_t most) {
  const json& array = object.at(field);
  std::vector<std::string> result;
  for (const auto& item : array) {
    if (result.size() == most) break;
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Names that stay below the runner folder.
std::vector<RunnerFile> files_in(const json& object) {
  std::vector<RunnerFile> files;
  const json given = object.value("files", json::object());
  for (const auto& [name, hex] : given.items()) {
    if (name.empty() || name[0] == '/' || name.find("..") != std::string::npos) continue;
    files.push_back({name, from_hex(hex.get<std::string>())});
  }
  return files;
}

/// From the last line of output: what an interpreter's own start-up prints comes before.
std::optional<Description> read_description(std::string_view output) {
  const std::string_view text = trim(output);
  const size_t newline = text.rfind('\n');
  try {
    const json object = json::parse(newline == std::string_view::npos ? text : text.substr(newline + 1));
    Description description;
    description.executable = object.at("executable").get<std::string>();
    description.version = object.at("version").get<std::string>();
    description.places = strings_in(object, "paths", kMaxPlaces);
    description.libraries = strings_in(object, "libraries", kMaxLibraries);
    description.files = files_in(object);
    description.is_virtual = object.at("virtual").get<bool>();
    return description;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> for_candidate(std::vector<std::string> argv, const std::string& candidate) {
  std::replace(argv.begin(), argv.end(), std::string("{candidate}"), candidate);
  return argv;
}

/// What one of the language's commands says about a candidate. The error is a sentence.
tl::expected<std::string, std::string> ask(const std::vector<std::string>& command, const std::string& candidate,
                                           const Surroundings& host) {
  SpawnSpec spec;
  spec.argv = for_candidate(command, candidate);
  spec.executable = spec.argv.front();
  spec.environment = {"PATH=" + host.path_list, "HOME=" + host.home};
  auto capture = run_and_capture(spec, Deadline::after(host.patience), {}, kMaxDescription);
  if (!capture) return tl::unexpected("does not work: " + capture.error().text());
  if (capture->exit_code != 0)
    return tl::unexpected("does not work: it ended with exit code " + std::to_string(capture->exit_code) + ": " +
                          last_line(capture->err));
  return capture->out.empty() ? std::move(capture->err) : std::move(capture->out);
}

/// The first number with a dot in it: "5.4.6" of "Lua 5.4.6  Copyright …".
std::string version_in(std::string_view text) {
  std::string version;
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), R"(([0-9]+(?:\.[0-9]+)+))", &version) ? version
                                                                                                             : "";
}

/// A runtime that says no more than its version lives in the folder above that of its executable.
tl::expected<Description, std::string> describe_by_version(const Language& language, const std::string& candidate,
                                                           const Surroundings& host) {
  const auto said = ask(language.version, candidate, host);
  if (!said) return tl::unexpected(said.error());
  Description description;
  description.executable = candidate;
  description.version = version_in(*said);
  if (description.version.empty()) return tl::unexpected(std::string("does not work: it did not say its version"));
  description.places = {prefix_of(canonical(candidate))};
  return description;
}

/// Asks a candidate what it is. The error is a sentence about it.
tl::expected<Description, std::string> describe(const Language& language, const std::string& candidate,
                                                const Surroundings& host) {
  if (language.describe.empty()) return describe_by_version(language, candidate, host);
  const auto said = ask(language.describe, candidate, host);
  if (!said) return tl::unexpected(said.error());
  auto description = read_description(*said);
  if (!description) return tl::unexpected(std::string("does not work: it did not say what it is"));
  if (description->executable.empty() || description->executable[0] != '/' ||
      access(description->executable.c_str(), X_OK) != 0)
    return tl::unexpected("does not work: the executable it names (" + description->executable + ") cannot be run");
  return std::move(*description);
}

std::vector<int> version_numbers(const std::string& version) {
  std::vector<int> numbers;
  for (const auto& part : split(version, '.')) numbers.push_back(std::atoi(part.c_str()));
  return numbers;
}

bool is_older(const std::string& version, const std::string& minimum) {
  return !minimum.empty() && version_numbers(version) < version_numbers(minimum);
}

/// Package stores whose programs load libraries from everywhere in the store: the prefix alone would not do.
std::optional<std::string> store_of(const std::string& executable) {
  if (is_within(executable, "/nix/store")) return "/nix/store";
  if (is_within(executable, "/gnu/store")) return "/gnu/store";
  const size_t cellar = executable.find("/Cellar/");  // Homebrew
  if (cellar != std::string::npos && cellar > 0) return executable.substr(0, cellar);
  return std::nullopt;
}

/// Size and time of writing: a runtime that was upgraded in place has others.
std::string stamp_of(const std::string& executable) {
  struct stat info {};
  if (stat(executable.c_str(), &info) != 0) return {};
  return std::to_string(info.st_size) + "-" + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec);
}

std::string unreachable(const std::string& path) {
  return "found but not reachable for the sandbox: " + path +
         " lies where sandboxed programs may not look (a folder on the way is closed to other users)";
}

/// The runtime as a sandbox needs it, or why it cannot be had there.
tl::expected<Runtime, std::string> to_runtime(Description description, const Surroundings& host) {
  Runtime runtime;
  runtime.executable = canonical_folder(description.executable);
  runtime.version = std::move(description.version);
  runtime.libraries = std::move(description.libraries);
  runtime.runner_files = std::move(description.files);
  if (const auto store = store_of(canonical(runtime.executable))) description.places.push_back(*store);
  runtime.paths = folders_to_show(description.places);

  const std::string uncovered = uncovered_link(runtime.executable, runtime.paths);
  if (!uncovered.empty()) {
    runtime.executable = canonical(runtime.executable);
    if (description.is_virtual || !uncovered_link(runtime.executable, runtime.paths).empty())
      return tl::unexpected("found but not usable: it leads through " + uncovered +
                            ", which is not part of the interpreter");
  }
  for (const auto& folder : runtime.paths)
    if (too_wide(folder, host.home))
      return tl::unexpected("found but not usable: it is installed into " + folder +
                            " itself, which is never shown to a sandbox");
  for (const auto& folder : runtime.paths)
    if (!host.can_show(folder)) return tl::unexpected(unreachable(folder));
  if (!host.can_show(runtime.executable)) return tl::unexpected(unreachable(runtime.executable));
  runtime.stamp = stamp_of(runtime.executable);
  return runtime;
}

tl::expected<Runtime, std::string> try_candidate(const Language& language, const std::string& candidate,
                                                 const Surroundings& host) {
  if (!host.can_show(candidate)) return tl::unexpected(unreachable(candidate));
  auto description = describe(language, candidate, host);
  if (!description) return tl::unexpected(description.error());
  if (is_older(description->version, language.minimum_version))
    return tl::unexpected("too old: it is version " + description->version + ", " + language.title + " " +
                          language.minimum_version + " or newer is needed");
  return to_runtime(std::move(*description), host);
}

/// Every executable that could be the language's runtime: the best name first, PATH before the well-known places.
std::vector<std::string> candidates(const Language& language, const Surroundings& host) {
  std::vector<std::string> found;
  std::vector<std::string> seen;  // /bin is /usr/bin on most systems
  const auto take = [&](const std::string& candidate) {
    const std::string place = canonical_folder(candidate);
    if (std::find(seen.begin(), seen.end(), place) != seen.end()) return;
    seen.push_back(place);
    found.push_back(candidate);
  };
  for (const auto& name : language.runtime_names)
    for (const auto& candidate : find_all_in_path(name, host.path_list)) take(candidate);
  for (const auto& place : language.well_known_places)
    for (const auto& folder : expand_place(place, host.home))
      for (const auto& name : language.runtime_names)
        for (const auto& candidate : find_all_in_path(name, folder)) take(candidate);
  return found;
}

RuntimeSearch search(const Language& language, const Surroundings& host) {
  RuntimeSearch result;
  for (const auto& candidate : candidates(language, host)) {
    auto runtime = try_candidate(language, candidate, host);
    if (runtime) {
      result.runtime = std::move(*runtime);
      return result;
    }
    result.rejected.push_back({candidate, std::move(runtime.error())});
  }
  return result;
}

/// The answer for one language. Its mutex is held while searching, so that others wait instead of searching too.
struct Answer {
  std::mutex mutex;
  std::shared_ptr<const RuntimeSearch> search;
  Deadline not_found_until = Deadline::never();

  bool is_good() const {
    if (!search) return false;
    if (!search->runtime) return !not_found_until.passed();
    return access(search->runtime->executable.c_str(), X_OK) == 0;  // it may have been upgraded away
  }
};

}  // namespace

struct RuntimeFinder::State {
  std::function<bool(const std::string&)> can_show;
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::chrono::milliseconds patience;
  std::mutex mutex;  ///< guards the map, not the answers in it
  std::map<std::string, Answer> answers;

  Answer& answer_for(const std::string& language) {
    const std::lock_guard lock(mutex);
    return answers[language];
  }

  Surroundings surroundings() const {
    return {can_show, environment("PATH").value_or(""), environment("HOME").value_or(""), patience};
  }
};

RuntimeFinder::RuntimeFinder(std::function<bool(const std::string&)> can_show,
                             std::function<std::optional<std::string>(const std::string&)> environment,
                             std::chrono::milliseconds patience)
    : state_(std::make_unique<State>()) {
  state_->can_show = std::move(can_show);
  state_->environment = std::move(environment);
  state_->patience = patience;
}

RuntimeFinder::~RuntimeFinder() = default;

std::shared_ptr<const RuntimeSearch> RuntimeFinder::find(const Language& language) {
  Answer& answer = state_->answer_for(language.name);
  const std::lock_guard lock(answer.mutex);
  if (!answer.is_good()) {
    answer.search = std::make_shared<const RuntimeSearch>(search(language, state_->surroundings()));
    answer.not_found_until = Deadline::after(kKeepNotFound);
  }
  return answer.search;
}

}  // namespace llm_sandbox
