#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// What a sandbox may use, where it is said at all.
struct LimitOverrides {
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> processes;
  std::optional<uint64_t> disk_bytes;
};

/// How packages of a language are named, installed and used.
struct PackageManager {
  std::string name_pattern;             ///< RE2; a name that does not match as a whole is refused
  bool names_fold = false;              ///< "Foo.Bar" and "foo-bar" are the same package
  bool installed_serves = true;         ///< a package that the runtime has need not be installed to be used
  std::vector<std::string> tool_names;  ///< an executable that installing needs: "{tool}"; none: not needed
  std::string how_to_get_tool;          ///< the command for a person
  std::vector<std::string> install;     ///< argv; the element "{names}" stands for all names, each one argument
  std::vector<std::string> settings;    ///< the server's variables that the manager gets; "PIP_*" means all of them
  std::vector<std::string>
      settings_files;  ///< the user's: "~/…" go below HOME, others stay where they are, folders, too
  std::vector<std::string> settings_folders;     ///< those whose value may be a folder, which is shown as well
  std::vector<std::string> shown;                ///< files and folders of the host that installing reads
  std::vector<std::string> install_environment;  ///< "NAME=value", only while installing
  std::vector<std::string> environment;          ///< "NAME=value", for programs that use packages
  std::vector<std::string> compile;              ///< argv in place of the language's own; empty: its own
  std::vector<std::string> run;                  ///< likewise
  std::vector<std::pair<std::string, std::string>> links;  ///< name in the workspace, what it leads to
};

/// A language is data: what config/languages/<name>.json says, plus its runner files.
/// In argvs and environment values "{runtime}" is the executable found, "{bin}" its folder, "{file}" the program's
/// path,
/// "{runner}" the folder of the runner files, "{build}" that for what a compiler makes, "{memory}" the sandbox's limit
/// in bytes (for runtimes that cannot see it), "{prepared}" what `prepare` made once (empty if it could not),
/// "{packages}" the installed packages, "{tool}" the package manager's executable.
struct Language {
  std::string name;   ///< "python": the canonical spelling
  std::string title;  ///< "Python"
  std::vector<std::string> aliases;
  std::string file_name;                  ///< "main.py"
  std::vector<std::string> file_endings;  ///< ".mjs": of program files, beside the ending of file_name
  /// "typescript" and "main.ts": further names, and the file in which a program lies that is asked for by one.
  std::vector<std::pair<std::string, std::string>> file_names;
  std::vector<std::string> compile;      ///< argv; empty: nothing to compile
  std::vector<std::string> run;          ///< argv
  std::vector<std::string> environment;  ///< "NAME=value"
  LimitOverrides limits;                 ///< what ordinary programs of the language need
  std::vector<std::string> prepare;      ///< argv, run once for each runtime to fill {prepared}; empty: nothing to do
  std::string package_manager;           ///< "pip": its name
  std::optional<PackageManager> packages;
  std::vector<std::string> use_cases;
  bool visualization_support = false;
  std::vector<LanguageExample> examples;
  std::vector<std::string> runtime_names;      ///< executables to look for, best first
  std::vector<std::string> well_known_places;  ///< folders searched after PATH; may start with "~/" and hold "*"
  std::string how_to_install;                  ///< the command for a person
  std::string image;                           ///< for backends that start from one; multi-arch
  std::string minimum_version;                 ///< older runtimes are not taken; empty: any
  /// A command line with which a candidate ("{candidate}") describes itself: it prints one JSON object {"executable",
  /// "version", "paths", "libraries", "virtual"} as its last line (src/languages/<name>/describe.*), optionally
  /// "files": {name: hex}, which become Runtime::runner_files.
  std::vector<std::string> describe;
  /// In place of `describe`: a command line that prints a version ("Lua 5.4.4 …": the first number with a dot).
  std::vector<std::string> version;
  /// A program that ended badly (exit code other than 0) ran out of memory by its own runtime's account if one of these
  /// (RE2) is found in the end of its stderr (16 KiB; node prints a stack of its own after it). They match what the
  /// runtime itself writes, not any text that speaks of memory.
  std::vector<std::string> out_of_memory_marks;
  std::vector<RunnerFile> runner_files;

  /// Where a program lies that is asked for by `name`: any spelling that LanguageCatalog::find accepts.
  const std::string& file_name_for(std::string_view name) const;
};

/// Whether a program's runtime said at the end of its stderr that it ran out of memory.
bool says_out_of_memory(const Language& language, std::string_view stderr_bytes);

/// An interpreter or compiler that was found and can be shown in a sandbox.
struct Runtime {
  std::string executable;              ///< resolved: no shim, no symbolic link that leaves `paths`
  std::string version;                 ///< "3.11.2"
  std::string stamp;                   ///< another one whenever the executable is another one
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

/// A language of the user's own, or a change to one.
struct LanguageSource {
  std::string json_text;
  std::string folder;  ///< where its runner files and describing script are looked for
};

/// The languages this program knows, in the order of CONTRACT (python, java, javascript, cpp, go, ruby, r).
/// Immutable once loaded; safe to use from any thread.
class LanguageCatalog {
 public:
  /// The built-in ones, embedded at build time. They are tested, so this cannot fail.
  static LanguageCatalog built_in();
  /// The built-in ones as the user's texts change them: a text that names a built-in language is a merge patch for it
  /// (RFC 7396), any other is a whole language, which comes last.
  static Result<LanguageCatalog> with(const std::vector<LanguageSource>& sources);
  /// One language from the text of its JSON file; kInvalidArgument with the path of the bad field
  /// ("examples[1].code: …").
  static Result<Language> parse(std::string_view json_text, const std::string& folder = {});

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
