#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/bubblewrap/arguments.h"
#include "backends/bubblewrap/memory_file.h"
#include "base/process.h"
#include "base/unique_fd.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

constexpr std::string_view kAgentPath = "/llm-sandbox/llm-sandbox-agent";

/// Keeps the memory files of contents that come again (runners). Safe from any thread.
class MemoryFileCache {
 public:
  Result<std::shared_ptr<const MemoryFile>> get(const std::string& content);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const MemoryFile>> files_;
};

/// What all sandboxes of a backend start from, prepared once. Safe from any thread.
struct Toolbox {
  std::string bwrap;
  std::string version;
  HostLayout layout;
  MemoryFile launcher;
  MemoryFile seccomp;             ///< where a control group holds the memory
  MemoryFile seccomp_with_watch;  ///< where only the agent's watch does
  size_t restricted_calls = 0;    ///< by the first
  std::vector<std::string> unknown_calls;
  SandboxFile agent;  ///< at kAgentPath
  std::shared_ptr<MemoryFileCache> files = std::make_shared<MemoryFileCache>();

  /// Finds bwrap, asks its version, builds the filter. kBackendUnavailable, kIo.
  static Result<Toolbox> prepare(const std::string& path_list, std::string_view agent);
};

/// One start.
struct StartRequest {
  std::vector<std::string> runtime_mounts;
  const std::vector<SandboxFile>* files = nullptr;
  std::vector<SandboxMount> mounts;
  uint64_t disk_bytes = 0;
  bool share_network = false;
  bool memory_is_held = true;           ///< by a control group
  std::vector<std::string> join_files;  ///< of the control groups to join
  std::optional<uid_t> host_id;         ///< to change to; the server must be root
  std::vector<std::string> program = {std::string(kAgentPath)};
  int input = -1;  ///< descriptors that become 0, 1, 2
  int output = -1;
  int errors = -1;
};

struct Started {
  Child monitor;      ///< the launcher, which ends after everything in the sandbox
  UniqueFd lifeline;  ///< closing it, or this process' end, ends the sandbox
};

/// Spawns launcher and bwrap.
Result<Started> start(const Toolbox& toolbox, const StartRequest& request);

}  // namespace llm_sandbox
