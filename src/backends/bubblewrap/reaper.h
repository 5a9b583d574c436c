#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "backends/bubblewrap/cgroups.h"
#include "backends/bubblewrap/host_ids.h"
#include "base/deadline.h"
#include "base/process.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

/// What a sandbox holds of the host. Members go in reverse order: the id last, when nothing runs under it any more.
struct HostResources {
  std::shared_ptr<const CgroupTree> cgroups;  ///< outlives the group
  std::optional<HostId> id;
  Cgroup cgroup;
  Child monitor;      ///< the launcher; it ends once everything in the sandbox has
  UniqueFd lifeline;  ///< closing it ends the sandbox (supervisor.h)
};

/// Buries sandboxes on a thread of its own: waits for their end, removes their control groups, frees their ids, in this
/// order. So that an answer never waits for the kernel's teardown. Safe from any thread.
class Reaper {
 public:
  Reaper();
  /// Waits a few seconds for what is left; what the kernel does not let go by then is logged and left alone.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Kills what runs and takes over the rest.
  void bury(HostResources resources) noexcept;
  /// Waits until all that was taken over is gone; false at the deadline.
  bool drain(Deadline deadline);

 private:
  struct Grave;
  void work();
  /// Takes in what was buried since the last round; false when there is nothing left to do.
  bool next_round(std::list<Grave>& graves);

  UniqueFd wake_;
  std::mutex mutex_;  ///< guards the members below
  std::condition_variable empty_;
  std::list<Grave> fresh_;
  size_t open_graves_ = 0;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace llm_sandbox
