#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/engine.h"

namespace llm_sandbox {

/// One thing a user can set: by flag, environment variable or configuration file, in this order of precedence.
struct Setting {
  const char* variable;  ///< "SANDBOX_MEMORY": its name everywhere in this program
  const char* flag;      ///< "memory": --memory on the command line, "memory" (with '_' for '-') in the file
  const char* fallback;  ///< shown in the help; "" where nothing set has a meaning of its own
  const char* help;
};

/// The settings of one run of the program. Immutable; values are texts, judged where they are used.
class Settings {
 public:
  struct Value {
    std::string text;
    std::string origin;  ///< "--memory", "SANDBOX_MEMORY", "config.json", "default"
  };

  /// Every setting there is; also what --help and --print-config show.
  static std::span<const Setting> table();

  /// `flags` by variable name. A configuration file that cannot be read or is wrong is remembered as error().
  Settings(std::map<std::string, std::string> flags, const std::string& config_file, EnvironmentLookup environment);

  /// Nothing if neither set nor with a default.
  std::optional<Value> get(const std::string& variable) const;
  std::string text(const std::string& variable) const;
  /// All of them layered into one lookup (defaults left out); variables that are not settings come from the
  /// environment.
  EnvironmentLookup lookup() const;
  const std::optional<Error>& error() const { return error_; }

  /// Bad values end up in EngineConfig::runtime as an error, so that the server starts and each call says what is
  /// wrong.
  EngineConfig engine_config() const;
  BackendFactory backend_factory() const;
  /// Where layers are kept and how much of them; kInvalidArgument.
  Result<LayerCache::Options> cache() const;
  /// 1 to 256 workers; kInvalidArgument otherwise, likewise for queue_capacity.
  Result<size_t> workers() const;
  Result<size_t> queue_capacity() const;

 private:
  std::map<std::string, std::string> flags_;
  std::map<std::string, std::string> file_;
  std::vector<LanguageSource> languages_;
  std::string file_name_;
  EnvironmentLookup environment_;
  std::optional<Error> error_;
};

}  // namespace llm_sandbox
