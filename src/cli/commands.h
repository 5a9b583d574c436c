#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/settings.h"

namespace llm_sandbox {

/// The sub-commands, one file each. Each returns the exit status of the process.

struct RunOptions {
  std::string file;  ///< "-" for stdin
  std::optional<std::string> code;
  std::string language;  ///< empty: by the file's ending, else python
  std::vector<std::string> libraries;
  double timeout_seconds = 30;
  std::string plots_folder;
  bool json = false;
};

struct CacheOptions {
  bool clear = false;    ///< else list
  std::string language;  ///< empty: all
  bool json = false;
};

/// The status of a run that could not be made, as against a program's own exit code (the convention of env and
/// timeout).
constexpr int kCouldNotRun = 125;

int serve_command(const Settings& settings);
int run_command(const Settings& settings, const RunOptions& options);
int languages_command(const Settings& settings, const std::string& name);
int doctor_command(const Settings& settings);
int cache_command(const Settings& settings, const CacheOptions& options);
int print_config_command(const Settings& settings);

}  // namespace llm_sandbox
