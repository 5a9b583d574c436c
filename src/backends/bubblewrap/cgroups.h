#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/bubblewrap/cgroup_files.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

enum class Controller { kMemory, kPids, kCpu };
constexpr std::array kControllers = {Controller::kMemory, Controller::kPids, Controller::kCpu};
std::string_view controller_name(Controller controller);

/// Where control groups are mounted and where this process stands in them.
struct CgroupPlace {
  std::string mount_info;   ///< /proc/self/mountinfo
  std::string self_cgroup;  ///< /proc/self/cgroup
  pid_t pid = 0;
  uint64_t start_time = 0;  ///< of the process, /proc/self/stat field 22
  bool is_root = false;
  static CgroupPlace of_this_process();
};

struct CgroupLimits {
  uint64_t memory_bytes = 0;
  uint32_t processes = 0;
  std::optional<double> cpus;
};

/// The control groups of one sandbox, in as many hierarchies as it takes. Empty ones do nothing.
/// One thread at a time.
class Cgroup {
 public:
  Cgroup() = default;
  /// The files that the sandbox's first process, single-threaded, writes "0" into to move itself there: v1 "tasks", v2
  /// "cgroup.procs". A thread that moves itself alone spares the kernel its lock over all forks and exits, which waits
  /// for an RCU grace period (some 10 ms); v2 has no such way for a group that controls memory.
  std::vector<std::string> join_files() const;
  LimitEvents events() const;
  /// Removes the folders; false while processes are left in one of them. Call again then.
  bool remove();

 private:
  friend class CgroupTree;
  explicit Cgroup(std::shared_ptr<CgroupFiles> files) : files_(std::move(files)) {}
  std::shared_ptr<CgroupFiles> files_;
  std::vector<std::string> folders_;
  std::string memory_folder_;  ///< empty where nothing limits it
  std::string pids_folder_;
};

/// This server's corner of the cgroup hierarchies: in each one a folder `llm-sandbox-<pid>-<start time>`, in which each
/// sandbox gets a folder of its own. A flock(2) on the server's folder says that the server lives; at the start folders
/// without it are swept, with what is left in them. v1 (one hierarchy for each controller) and v2, also mixed.
/// Const after open(), so safe from any thread.
class CgroupTree {
 public:
  /// Never fails: what cannot be used is left out, and why_not() says why.
  static std::shared_ptr<const CgroupTree> open(const CgroupPlace& place, std::shared_ptr<CgroupFiles> files);
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  bool holds(Controller controller) const { return homes_[index(controller)] != nullptr; }
  /// "cgroup v1" or "cgroup v2", for people.
  std::string version(Controller controller) const;
  /// Why a controller cannot be used; empty if it can.
  const std::string& why_not(Controller controller) const { return reasons_[index(controller)]; }

  /// Folders for one sandbox, with the limits as far as controllers are there. kIo.
  Result<Cgroup> make(const std::string& name, const CgroupLimits& limits) const;

 private:
  /// The server's folder in one hierarchy.
  struct Home {
    std::string folder;
    bool v2 = false;
    UniqueFd alive;
    std::string moved_from;  ///< v2: the group that this process left for `folder`/server, so as to have children there
  };
  explicit CgroupTree(std::shared_ptr<CgroupFiles> files) : files_(std::move(files)) {}
  static size_t index(Controller controller) { return static_cast<size_t>(controller); }

  void open_v1(const CgroupPlace& place);
  void open_v2(const CgroupPlace& place);
  bool open_v2_at(const std::string& folder, const CgroupPlace& place, std::string& why);
  bool step_aside(Home& home, const std::string& folder, const CgroupPlace& place, std::string& why) const;
  bool hand_down(const std::shared_ptr<Home>& home, const std::string& folder, const std::vector<Controller>& wanted,
                 std::string& why);
  std::shared_ptr<Home> make_home(const std::string& below, std::string& why);
  void leave(const Home& home) const;

  std::shared_ptr<CgroupFiles> files_;
  pid_t pid_ = 0;
  std::string home_name_;
  std::array<std::shared_ptr<Home>, kControllers.size()> homes_;
  std::array<std::string, kControllers.size()> reasons_;
};

}  // namespace llm_sandbox
