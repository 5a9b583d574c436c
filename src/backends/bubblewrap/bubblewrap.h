#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/backend.h"

namespace llm_sandbox {

/// The agent's executable, built from src/sandbox/agent/.
namespace embedded {
std::string_view agent();
}

/// Sandboxes made with bubblewrap (bwrap): Linux namespaces, a system call filter, control groups where they can be
/// had. Nothing is looked at before the first call that needs it.
///
/// A sandbox ends with the thread that called open() (bwrap's --die-with-parent is PR_SET_PDEATHSIG, which means the
/// parent *thread*): call it from threads that live as long as their sandboxes, such as those of WorkerPool.
class BubblewrapBackend final : public Backend {
 public:
  /// Tests replace these.
  struct Options {
    std::string_view agent = embedded::agent();
    std::string path_list;  ///< where bwrap is looked for; empty: PATH
  };
  explicit BubblewrapBackend(Options options = {embedded::agent(), ""});
  /// Waits a few seconds for closed sandboxes to go away.
  ~BubblewrapBackend() override;

  std::string_view name() const override { return "bubblewrap"; }
  Probe probe() override;
  std::vector<Capability> capabilities() override;
  Result<void> check(const RuntimeConfig& config) const override;
  bool network_reachable(const RuntimeConfig& config) const override;
  bool can_show(const std::string& host_path) const override;
  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec, Deadline deadline, std::stop_token stop) override;
  void drain(Deadline deadline) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace llm_sandbox
