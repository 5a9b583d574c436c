#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/channel.h"
#include "sandbox/limits.h"
#include "sandbox/runtime_config.h"

namespace llm_sandbox {

/// Where things are inside every sandbox, whatever the backend.
constexpr std::string_view kWorkspace = "/sandbox";                          ///< the program's working folder, writable
constexpr std::string_view kTemporary = "/tmp";                              ///< writable; also HOME
constexpr std::string_view kArtifactFolder = "/tmp/.llm-sandbox/artifacts";  ///< runners put figures here, out of band
constexpr std::string_view kRunnerFolder = "/llm-sandbox";  ///< read-only: the runners of src/languages/

constexpr std::string_view kPreparedFolder = "/opt/llm-sandbox/prepared";  ///< read-only: what a runtime made once
constexpr std::string_view kPackagesFolder = "/opt/llm-sandbox/packages";  ///< read-only: installed packages
constexpr std::string_view kBuildFolder = "/tmp/.llm-sandbox/build";       ///< what a compiler makes

/// A small read-only file that the backend places in the sandbox.
struct SandboxFile {
  std::string path;  ///< absolute, in the sandbox
  std::string content;
};

/// A folder or socket of the host that the server made for sandboxes, shown at a place of its own.
struct SandboxMount {
  std::string host_path;  ///< empty: an empty folder
  std::string path;       ///< absolute, in the sandbox
  bool writable = false;  ///< the backend gives it to the sandbox's user
};

/// What a backend needs to know to make one sandbox.
struct SandboxSpec {
  RuntimeConfig config;
  SandboxLimits limits;
  std::vector<std::string> runtime_paths;  ///< host folders shown read-only at the same place (an interpreter's prefix)
  std::vector<SandboxFile> files;
  std::vector<SandboxMount> mounts;
};

/// What the limits outside the agent did to a sandbox so far (zero where no cgroup holds it).
struct LimitEvents {
  uint64_t out_of_memory_kills = 0;
  uint64_t process_limit_hits = 0;
};

/// A live place with an agent in it. Owns all that its backend made for it; the destructor closes it.
/// One thread at a time.
class Sandbox {
 public:
  virtual ~Sandbox() = default;
  /// The stream to the agent, which has said that it is ready.
  virtual Channel& channel() = 0;
  /// Names the sandbox in logs.
  virtual std::string_view id() const = 0;
  virtual LimitEvents limit_events() = 0;
  /// The ExecLimits that the agent has to enforce because nothing outside does.
  virtual ExecLimits inner_limits(ExecLimits limits) const = 0;
  /// Ends everything in it. May be called twice; returns before the host has cleaned up (Backend::drain waits for
  /// that).
  virtual void close() noexcept = 0;
};

}  // namespace llm_sandbox
