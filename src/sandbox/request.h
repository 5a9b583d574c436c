#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/limits.h"

namespace llm_sandbox {

enum class Stream { kStdout, kStderr };

/// Why a run did not simply end by itself. The first cause that is found stays.
enum class Reason {
  kTimeout,
  kMemoryLimit,
  kProcessLimit,
  kOutputLimit,
  kDiskLimit,
  kCancelled,
  kSignal,
  kInstallFailed,
  kCompileFailed,
  kPolicy,
  kBackendUnavailable,
  kInvalidArgument,
};
/// "timeout", "memory_limit", …: the names of CONTRACT, as clients see them.
std::string_view reason_name(Reason reason);
/// Whether the run could not be made or had to be stopped (MCP's isError), as against a program that ended by itself.
bool is_stopped(Reason reason);

/// One program to run.
struct ExecutionRequest {
  std::string code;                           ///< byte for byte
  std::string language = "python";            ///< any spelling that LanguageCatalog::find accepts
  std::vector<std::string> libraries;         ///< packages to install first
  std::chrono::milliseconds timeout{30'000};  ///< wall clock for the program alone; > 0
};

/// A picture or document that the program made.
struct Artifact {
  std::string name;       ///< "figure 1", or the file's path in the workspace
  std::string mime_type;  ///< found by looking at the content
  std::string content;    ///< raw bytes
};

/// How a program ended and what it left.
struct ExecutionResult {
  int exit_code = 0;         ///< 124 timeout, 137 memory, 128 + n signal n
  std::string stdout_bytes;  ///< raw, bounded; a note in the middle where something was left out
  std::string stderr_bytes;
  std::optional<Reason> reason;
  bool truncated = false;
  std::vector<std::string> notes;         ///< whole sentences for the caller
  std::vector<Artifact> artifacts;        ///< in drawing order
  std::chrono::microseconds duration{0};  ///< of the program alone
  std::string language;
  std::string backend;
  bool network = false;  ///< whether the program could reach a network
};

/// What is going on, for a progress notification.
struct Progress {
  std::string message;  ///< "starting the sandbox", or the newest line of output
};

/// What belongs to a call but not to the program: how to stop it and whom to tell.
/// The callbacks come from the worker that runs the call, never two at a time; either may be empty.
struct RequestContext {
  std::stop_token stop;
  std::function<void(const Progress&)> on_progress;
  std::function<void(Stream, std::string_view)> on_output;  ///< as it comes, before truncation; any bytes
};

}  // namespace llm_sandbox
