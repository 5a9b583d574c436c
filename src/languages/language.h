#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace llm_sandbox {

struct LanguageExample {
  std::string title;
  std::string description;
  std::string code;
};

/// A file that the language's way of running needs inside the sandbox (a runner of src/languages/<name>/).
struct RunnerFile {
  std::string name;  ///< below kRunnerFolder
  std::string content;
};

/// A language is data: what config/languages/<name>.json says, plus its runner files.
/// In the argv and environment values "{runtime}" is the interpreter found, "{file}" the program's path, "{runner}" the
/// folder of the runner files.
struct Language {
  std::string name;   ///< "python": the canonical spelling
  std::string title;  ///< "Python"
  std::vector<std::string> aliases;
  bool runnable = true;                   ///< false: known to clients, not yet runnable in this version
  std::string file_name;                  ///< "main.py"
  std::vector<std::string> file_endings;  ///< ".mjs": of program files, beside the ending of file_name
  std::vector<std::string> run;           ///< argv
  std::vector<std::string> environment;   ///< "NAME=value"
  std::string package_manager;            ///< "pip"
  std::vector<std::string> use_cases;
  bool visualization_support = false;
  std::vector<LanguageExample> examples;
  std::vector<std::string> runtime_names;      ///< executables to look for, best first
  std::vector<std::string> well_known_places;  ///< folders searched after PATH; may start with "~/" and hold "*"
  std::string how_to_install;                  ///< the command for a person
  std::string minimum_version;                 ///< older runtimes are not taken; empty: any
  /// Arguments with which a candidate describes itself: it prints one JSON object {"executable", "version", "paths",
  /// "libraries", "virtual"} as its last line (src/languages/<name>/describe.*), optionally "files": {name: hex}, which
  /// become Runtime::runner_files. Empty while not runnable.
  std::vector<std::string> describe;
  /// A program that ended badly (exit code other than 0) ran out of memory by its own runtime's account if the end of
  /// its stderr (16 KiB) holds one of these (node prints a stack of its own after the mark).
  std::vector<std::string> out_of_memory_marks;
  std::vector<RunnerFile> runner_files;
};

/// An interpreter or compiler that was found and can be shown in a sandbox.
struct Runtime {
  std::string executable;              ///< resolved: no shim, no symbolic link that leaves `paths`
  std::string version;                 ///< "3.11.2"
  std::vector<std::string> paths;      ///< host folders needed beside the base system (/usr, /lib, …); may be empty
  std::vector<std::string> libraries;  ///< "numpy 1.24.2": what a program can really import beyond the standard library
  std::vector<RunnerFile> runner_files;  ///< beside the language's own: those as this runtime compiles them
};

/// Why a candidate was not taken, for `languages` and `doctor`.
struct RejectedRuntime {
  std::string path;
  std::string why;
};

struct RuntimeSearch {
  std::optional<Runtime> runtime;
  std::vector<RejectedRuntime> rejected;
};

/// The languages this program knows, in the order of CONTRACT (python, java, javascript, cpp, go, ruby, r).
/// Immutable once loaded; safe to use from any thread.
class LanguageCatalog {
 public:
  /// The built-in ones, embedded at build time. They are tested, so this cannot fail.
  static LanguageCatalog built_in();
  /// One language from the text of its JSON file; kInvalidArgument with the path of the bad field
  /// ("examples[1].code: …").
  static Result<Language> parse(std::string_view json_text);

  const std::vector<Language>& all() const { return languages_; }
  /// Any case, surrounding blanks and aliases accepted; null if unknown.
  const Language* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::vector<Language> languages_;
};

/// Finds the runtimes of this host, each once (the answer is kept; a "not found" is looked for again after a few
/// seconds). Thread-safe: concurrent calls for one language search once, for different ones side by side.
class RuntimeFinder {
 public:
  /// `can_show` says whether a host path can be shown in a sandbox; `environment` gives PATH and HOME. A candidate that
  /// has not described itself after `patience` counts as broken.
  RuntimeFinder(std::function<bool(const std::string&)> can_show,
                std::function<std::optional<std::string>(const std::string&)> environment,
                std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~RuntimeFinder();

  std::shared_ptr<const RuntimeSearch> find(const Language& language);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace llm_sandbox
