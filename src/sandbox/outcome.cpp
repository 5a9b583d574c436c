#include "sandbox/outcome.h"

#include <signal.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/text.h"

namespace llm_sandbox {
namespace {

constexpr int kTimeoutExitCode = 124;
constexpr int kKilledExitCode = 128 + SIGKILL;

void stop(ExecutionResult& result, Reason reason, int exit_code, std::string note) {
  result.reason = reason;
  result.exit_code = exit_code;
  result.notes.push_back(std::move(note));
}

std::string signal_note(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* meaning = sigdescr_np(signal);
  return "The program was ended by signal " + std::to_string(signal) +
         (name == nullptr ? std::string() : " (SIG" + std::string(name) + ": " + meaning + ")") + ".";
}

std::string memory_note(const SandboxLimits& limits) {
  return "The program used more memory than it may (" + format_bytes(limits.memory_bytes) +
         "). Work on less data at a time, or raise SANDBOX_MEMORY.";
}

std::string killed_process_note(const SandboxLimits& limits) {
  return "A process that the program had started was killed: together they used more memory than they may (" +
         format_bytes(limits.memory_bytes) + ").";
}

std::string process_note(const SandboxLimits& limits) {
  return "The limit of " + std::to_string(limits.processes) +
         " processes and threads was reached. Start fewer at a time.";
}

std::string disk_note(const SandboxLimits& limits) {
  return "The workspace and /tmp together may hold " + format_bytes(limits.disk_bytes) +
         ", and that is full. Write less, or remove files that are no longer needed.";
}

Reason reason_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kTooLarge:
      return Reason::kInvalidArgument;
    case ErrorCode::kPolicy:
      return Reason::kPolicy;
    case ErrorCode::kInstallFailed:
      return Reason::kInstallFailed;
    case ErrorCode::kCancelled:
      return Reason::kCancelled;
    default:
      return Reason::kBackendUnavailable;
  }
}

}  // namespace

std::string format_duration(std::chrono::milliseconds duration) {
  if (duration.count() < 1000) return std::to_string(duration.count()) + " ms";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g s", static_cast<double>(duration.count()) / 1000);
  return buffer;
}

void judge_outcome(const ExitedMessage& exited, const LimitEvents& events, const Language& language,
                   const ExecLimits& exec_limits, const SandboxLimits& limits, ExecutionResult& result) {
  switch (exited.cause) {
    case EndCause::kTimeout:
      stop(result, Reason::kTimeout, kTimeoutExitCode,
           "The program was stopped after " + format_duration(exec_limits.wall) +
               ", its time limit. Give a longer timeout, or do less in one call.");
      if (events.process_limit_hits > 0 || exited.process_limit_seen) result.notes.push_back(process_note(limits));
      if (events.out_of_memory_kills > 0) result.notes.push_back(killed_process_note(limits));
      return;
    case EndCause::kOutputLimit:
      return stop(result, Reason::kOutputLimit, kKilledExitCode,
                  "The program was stopped because it printed more than " + format_bytes(exec_limits.output_bytes) +
                      ". Print less, or write to a file.");
    case EndCause::kMemoryLimit:
      return stop(result, Reason::kMemoryLimit, kKilledExitCode, memory_note(limits));
    case EndCause::kDiskLimit:
      return stop(result, Reason::kDiskLimit, kKilledExitCode,
                  "The program was stopped because it made more than " + std::to_string(kMostFiles) +
                      " files and folders. Make fewer, or remove those that are no longer needed.");
    case EndCause::kKilled:
      return stop(result, Reason::kCancelled, kKilledExitCode, "The program was stopped on request.");
    case EndCause::kExited:
      break;
  }

  const int signal = static_cast<int>(exited.signal);
  result.exit_code = signal != 0 ? 128 + signal : static_cast<int>(exited.exit_code);
  if (events.out_of_memory_kills > 0) {
    if (signal == SIGKILL) return stop(result, Reason::kMemoryLimit, kKilledExitCode, memory_note(limits));
    result.notes.push_back(killed_process_note(limits));
    if (result.exit_code != 0) result.reason = Reason::kMemoryLimit;
    return;
  }
  if (result.exit_code == 0) return;
  if (says_out_of_memory(language, result.stderr_bytes))
    return stop(result, Reason::kMemoryLimit, result.exit_code, memory_note(limits));
  if (signal == SIGXFSZ || exited.disk_full_seen)
    return stop(result, Reason::kDiskLimit, result.exit_code, disk_note(limits));
  if (events.process_limit_hits > 0 || exited.process_limit_seen)
    return stop(result, Reason::kProcessLimit, result.exit_code, process_note(limits));
  if (signal != 0) stop(result, Reason::kSignal, result.exit_code, signal_note(signal));
}

void judge_error(const Error& error, ExecutionResult& result) {
  result.reason = reason_of(error.code);
  result.exit_code = error.code == ErrorCode::kCancelled ? kKilledExitCode : 1;
  if (error.code == ErrorCode::kCancelled) {
    result.notes.emplace_back("The program was stopped on request.");
    return;
  }
  if (!result.stderr_bytes.empty() && result.stderr_bytes.back() != '\n') result.stderr_bytes += '\n';
  result.stderr_bytes += error.text();
}

}  // namespace llm_sandbox
