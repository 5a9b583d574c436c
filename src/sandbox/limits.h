#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace llm_sandbox {

/// What a sandbox as a whole may use. Enforced from outside (cgroups) where the host allows it, else by rlimits and the
/// agent's own watch; Backend::capabilities() says which holds.
struct SandboxLimits {
  uint64_t memory_bytes = uint64_t{512} << 20;
  uint32_t processes = 128;                   ///< threads count too
  uint64_t disk_bytes = uint64_t{256} << 20;  ///< workspace and /tmp together
  std::optional<double> cpus;                 ///< cores' worth of time; nothing set: no limit
};

/// What one program in a sandbox may use. Enforced by the agent.
struct ExecLimits {
  std::chrono::milliseconds wall{30'000};
  uint64_t output_bytes = uint64_t{256} << 20;  ///< stdout and stderr together; more ends the program (output_limit)
  uint64_t file_bytes = uint64_t{256} << 20;    ///< the largest file it may write (RLIMIT_FSIZE)
  uint32_t open_files = 1024;
  /// Set where no cgroup holds the sandbox: RLIMIT_NPROC, RLIMIT_DATA, and the agent's watch over all processes'
  /// memory.
  std::optional<uint32_t> processes;
  std::optional<uint64_t> memory_bytes;
};

/// How much of each output stream an answer keeps: its beginning and its end, half each.
constexpr uint64_t kDefaultKeptOutputBytes = uint64_t{1} << 20;

}  // namespace llm_sandbox
