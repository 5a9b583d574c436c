#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace llm_sandbox::agent {

/// What the processes of a tree hold at one moment.
struct TreeUse {
  uint64_t memory_bytes = 0;  ///< anonymous and shared memory that is resident, and page tables
  uint64_t tasks = 0;         ///< threads, and what is dead but not yet reaped
};

/// Everything that descends from one main process. The agent is its subreaper or PID 1, so whatever loses its parent
/// becomes the agent's child, and as long as anything lives the agent has a child: neither setsid nor a double fork
/// leads out. One tree at a time.
class ProcessTree {
 public:
  explicit ProcessTree(pid_t main) : main_(main) {}

  pid_t main() const { return main_; }

  /// Takes in all that has died since.
  void reap();
  /// One round of killing: of everything in the PID namespace when the agent is its PID 1, else of all descendants. To
  /// be repeated, after reap(), until empty(): what was just being born is met by the next round.
  void kill_round() const;

  /// The wait status of the main process, once it was reaped.
  std::optional<int> main_status() const { return main_status_; }
  bool empty() const { return empty_; }

  /// Counts what lives. `enough_bytes`: a sum above it is counted again more precisely (shared pages once), which costs
  /// milliseconds; 0: never.
  TreeUse measure(uint64_t enough_bytes) const;

  // Of all that was reaped so far.
  uint64_t user_us() const { return user_us_; }
  uint64_t system_us() const { return system_us_; }
  uint64_t max_rss_bytes() const { return max_rss_bytes_; }

 private:
  pid_t main_;
  std::optional<int> main_status_;
  bool empty_ = false;
  uint64_t user_us_ = 0;
  uint64_t system_us_ = 0;
  uint64_t max_rss_bytes_ = 0;
};

}  // namespace llm_sandbox::agent
