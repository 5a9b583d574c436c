#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

/// How well a promise of the program holds on this host, and why not better.
struct Capability {
  enum class Level { kSupported, kDegraded, kUnsupported };
  std::string name;  ///< "memory limit", "process limit", "network off", …
  Level level = Level::kSupported;
  std::string detail;  ///< by what it is enforced, or why it is not
};

/// Whether a backend can be used here and now.
struct Probe {
  bool usable = false;
  std::string detail;  ///< version and way of working; if not usable: why not
  std::string mend;    ///< if not usable: the command or setting that helps
};

/// Makes sandboxes of one kind. Knows nothing of MCP or of languages.
/// All members may be called from several threads at once.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  /// Looks at the host, with a trial run. Costs tens of milliseconds; asked again only when the last answer was "no".
  virtual Probe probe() = 0;
  virtual std::vector<Capability> capabilities() = 0;

  /// Whether every setting of `config` can be honoured; else kInvalidArgument naming the variable. Cheap.
  virtual Result<void> check(const RuntimeConfig& config) const = 0;
  /// Whether a program in its sandboxes reaches a network under this configuration.
  virtual bool network_reachable(const RuntimeConfig& config) const = 0;
  /// Whether a host path can be shown in a sandbox (a server run as root starts sandboxes under an id that may not
  /// reach it).
  virtual bool can_show(const std::string& host_path) const = 0;

  /// Makes a sandbox whose agent is ready. kBackendUnavailable, kTimeout, kCancelled.
  virtual Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec, Deadline deadline, std::stop_token stop) = 0;

  /// Waits until all closed sandboxes are gone from the host.
  virtual void drain(Deadline deadline) = 0;
};

}  // namespace llm_sandbox
