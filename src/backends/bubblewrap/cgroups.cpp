#include "backends/bubblewrap/cgroups.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

#include "backends/bubblewrap/host_files.h"
#include "base/text.h"

namespace llm_sandbox {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kFolderPrefix = "llm-sandbox-";
constexpr std::string_view kServerLeaf = "/server";

// ---- where the hierarchies are ----

struct Hierarchy {
  bool v2 = false;
  std::vector<std::string> options;  ///< v1: the controllers are among them
  std::string mount_point;
  std::string own;  ///< the folder of the group that this process is in
};

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// The path of this process' group in a hierarchy, from /proc/self/cgroup (lines "id:controllers:path", cgroups(7)).
std::string own_path(const std::string& self_cgroup, const Hierarchy& hierarchy) {
  for (const auto& line : split(self_cgroup, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const auto controllers = split(parts[1], ',');
    const bool same = hierarchy.v2 ? parts[0] == "0" : contains(hierarchy.options, controllers.front());
    if (same && !controllers.front().empty() == !hierarchy.v2)
      return line.substr(parts[0].size() + parts[1].size() + 2);
  }
  return "/";
}

/// A mount may show only part of a hierarchy (containers): `root` is where it begins.
std::string below_mount(const std::string& mount_point, const std::string& root, const std::string& path) {
  std::string rest = path;
  if (root != "/") rest = path.starts_with(root) ? path.substr(root.size()) : "";
  return rest == "/" ? mount_point : mount_point + rest;
}

/// Lines of mountinfo: "id parent dev root mount-point options [tags…] - type source super-options" (proc(5)).
std::vector<Hierarchy> hierarchies(const CgroupPlace& place) {
  std::vector<Hierarchy> found;
  for (const auto& line : split(place.mount_info, '\n')) {
    const auto parts = words(line);
    const auto dash = std::find(parts.begin(), parts.end(), "-");
    if (parts.size() < 6 || parts.end() - dash < 4) continue;
    if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
    Hierarchy hierarchy;
    hierarchy.v2 = dash[1] == "cgroup2";
    hierarchy.options = split(dash[3], ',');
    hierarchy.mount_point = parts[4];
    hierarchy.own = below_mount(parts[4], parts[3], own_path(place.self_cgroup, hierarchy));
    found.push_back(std::move(hierarchy));
  }
  return found;
}

std::string reason(const std::string& what, int error_number) {
  char buffer[128];
  return what + ": " + strerror_r(error_number, buffer, sizeof buffer);
}

// ---- folders of servers ----

/// A process may open several trees (tests do).
std::string home_name(const CgroupPlace& place) {
  static std::atomic<unsigned> trees{0};
  const std::string name =
      std::string(kFolderPrefix) + std::to_string(place.pid) + "-" + std::to_string(place.start_time);
  const unsigned number = trees++;
  return number == 0 ? name : name + "-" + std::to_string(number);
}

/// The lock says that the folder's server lives. Empty if another holds it, or the folder is gone.
UniqueFd lock_folder(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat locked {};
  struct stat named {};
  if (!fd || flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || fstat(fd.get(), &locked) != 0) return {};
  // Between open and flock a sweeper may have removed it.
  if (stat(folder.c_str(), &named) != 0 || named.st_ino != locked.st_ino) return {};
  return fd;
}

void kill_all(CgroupFiles& files, const std::string& folder) {
  if (files.write(folder + "/cgroup.kill", "1") == 0) return;  // v2, Linux 5.14
  for (const auto& line : split(files.read(folder + "/cgroup.procs").value_or(""), '\n'))
    if (const auto pid = to_number(line); pid && *pid > 1) kill(static_cast<pid_t>(*pid), SIGKILL);
}

/// Kills what is in a group until the kernel lets it be removed; a dying process stays in its group for a moment, and
/// nothing tells when it has left (v1).
void kill_and_remove(CgroupFiles& files, const std::string& folder, Deadline deadline) {
  for (const auto& name : files.folders(folder)) kill_and_remove(files, folder + "/" + name, deadline);
  while (files.remove_folder(folder) == EBUSY && !deadline.passed()) {
    kill_all(files, folder);
    poll(nullptr, 0, 2);
  }
}

void sweep(CgroupFiles& files, const std::string& below) {
  for (const auto& name : files.folders(below)) {
    if (!name.starts_with(kFolderPrefix)) continue;
    const UniqueFd lock = lock_folder(below + "/" + name);
    if (lock) kill_and_remove(files, below + "/" + name, Deadline::after(1s));
  }
}

// ---- limits ----

constexpr uint64_t kMostTcpBytes = uint64_t{64} << 20;

struct Setting {
  std::string file;
  std::string value;
  bool required = true;  ///< false: kernels without it lose nothing, or cannot swap anyway
};

std::string quota_us(double cpus) {
  return std::to_string(std::max<long long>(1000, std::llround(std::min(cpus, 1e6) * 100'000)));
}

std::vector<Setting> settings_for(Controller controller, bool v2, const CgroupLimits& limits) {
  const std::string memory = std::to_string(limits.memory_bytes);
  switch (controller) {
    case Controller::kMemory:
      // memory.oom.group stays 0: the agent has to survive to tell why the program ended.
      if (v2) return {{"memory.max", memory}, {"memory.swap.max", "0", false}};
      return {
          {"memory.limit_in_bytes", memory},
          {"memory.memsw.limit_in_bytes", memory, false},
          {"memory.swappiness", "0", false},
          // v1 does not charge the buffers of TCP to the limit above.
          {"memory.kmem.tcp.limit_in_bytes", std::to_string(std::min(limits.memory_bytes / 4, kMostTcpBytes)), false}};
    case Controller::kPids:
      return {{"pids.max", std::to_string(limits.processes)}};
    case Controller::kCpu:
      if (!limits.cpus) return {};
      if (v2) return {{"cpu.max", quota_us(*limits.cpus) + " 100000"}};
      return {{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", quota_us(*limits.cpus)}};
  }
  return {};
}

/// The number behind a key in a file of "key number" lines.
uint64_t counter(const CgroupFiles& files, const std::string& path, std::string_view key) {
  for (const auto& line : split(files.read(path).value_or(""), '\n')) {
    const auto parts = words(line);
    if (parts.size() == 2 && parts[0] == key) return to_number(parts[1]).value_or(0);
  }
  return 0;
}

}  // namespace

std::string_view controller_name(Controller controller) {
  constexpr std::array<std::string_view, kControllers.size()> kNames = {"memory", "pids", "cpu"};
  return kNames[static_cast<size_t>(controller)];
}

CgroupPlace CgroupPlace::of_this_process() {
  CgroupPlace place;
  place.mount_info = read_host_file("/proc/self/mountinfo").value_or("");
  place.self_cgroup = read_host_file("/proc/self/cgroup").value_or("");
  place.pid = getpid();
  place.is_root = geteuid() == 0;
  // The program's name, second field, may hold anything; the fields behind its last ")" are numbers.
  const std::string stat = read_host_file("/proc/self/stat").value_or("");
  const auto fields = words(std::string_view(stat).substr(std::min(stat.size(), stat.rfind(')') + 1)));
  if (fields.size() > 19) place.start_time = to_number(fields[19]).value_or(0);
  return place;
}

std::vector<std::string> Cgroup::join_files() const {
  std::vector<std::string> paths;
  for (const auto& folder : folders_) {
    const std::string tasks = folder + "/tasks";
    paths.push_back(files_->exists(tasks) ? tasks : folder + "/cgroup.procs");
  }
  return paths;
}

LimitEvents Cgroup::events() const {
  LimitEvents events;
  if (!memory_folder_.empty()) {
    const std::string v2_file = memory_folder_ + "/memory.events";
    const bool v2 = files_->exists(v2_file);
    events.out_of_memory_kills = counter(*files_, v2 ? v2_file : memory_folder_ + "/memory.oom_control", "oom_kill");
  }
  if (!pids_folder_.empty()) events.process_limit_hits = counter(*files_, pids_folder_ + "/pids.events", "max");
  return events;
}

bool Cgroup::remove() {
  std::erase_if(folders_, [&](const std::string& folder) {
    const int error = files_->remove_folder(folder);
    return error == 0 || error == ENOENT;
  });
  return folders_.empty();
}

std::shared_ptr<const CgroupTree> CgroupTree::open(const CgroupPlace& place, std::shared_ptr<CgroupFiles> files) {
  std::shared_ptr<CgroupTree> tree(new CgroupTree(std::move(files)));
  tree->pid_ = place.pid;
  tree->home_name_ = home_name(place);
  tree->open_v1(place);
  tree->open_v2(place);
  return tree;
}

/// Makes and locks the server's folder. Tried again where a sweeper took it for a dead one before it was locked.
std::shared_ptr<CgroupTree::Home> CgroupTree::make_home(const std::string& below, std::string& why) {
  const std::string folder = below + "/" + home_name_;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const int error = files_->make_folder(folder);
    if (error != 0 && error != EEXIST) {
      why = reason("no group can be made in " + below, error);
      return nullptr;
    }
    if (UniqueFd alive = lock_folder(folder)) {
      auto home = std::make_shared<Home>();
      home->folder = folder;
      home->alive = std::move(alive);
      return home;
    }
  }
  why = "the group " + folder + " cannot be locked";
  return nullptr;
}

void CgroupTree::open_v1(const CgroupPlace& place) {
  for (const auto& hierarchy : hierarchies(place)) {
    if (hierarchy.v2) continue;
    std::shared_ptr<Home> home;  // several controllers may share a hierarchy
    for (const auto controller : kControllers) {
      if (!contains(hierarchy.options, controller_name(controller)) || holds(controller)) continue;
      if (!home) {
        sweep(*files_, hierarchy.own);
        home = make_home(hierarchy.own, reasons_[index(controller)]);
      }
      homes_[index(controller)] = home;
    }
  }
}

void CgroupTree::open_v2(const CgroupPlace& place) {
  std::string why = "no control groups are mounted";
  for (const auto& hierarchy : hierarchies(place)) {
    if (!hierarchy.v2) continue;
    if (open_v2_at(hierarchy.own, place, why)) break;
    // Outside systemd units root may use the hierarchy's root, the only group that may hold processes beside groups.
    if (place.is_root && hierarchy.own != hierarchy.mount_point && open_v2_at(hierarchy.mount_point, place, why)) break;
  }
  for (const auto controller : kControllers)
    if (!holds(controller) && reasons_[index(controller)].empty()) reasons_[index(controller)] = why;
}

/// Enables the controllers that v1 does not have for children of `folder` and makes the server's folder there.
bool CgroupTree::open_v2_at(const std::string& folder, const CgroupPlace& place, std::string& why) {
  const auto offered = words(files_->read(folder + "/cgroup.controllers").value_or(""));
  std::vector<Controller> wanted;
  for (const auto controller : kControllers)
    if (!holds(controller) && contains(offered, controller_name(controller))) wanted.push_back(controller);
  if (wanted.empty()) {
    why = "the control group " + folder + " offers no controller for it";
    return false;
  }
  sweep(*files_, folder);
  const auto home = make_home(folder, why);
  if (!home) return false;
  home->v2 = true;
  const bool enabled = step_aside(*home, folder, place, why) && hand_down(home, folder, wanted, why);
  if (!enabled) leave(*home);
  return enabled;
}

/// A group with controllers for its children must hold no process itself (kernel, cgroup-v2.rst, "No Internal Process
/// Constraint"); the root is exempt. If this process is alone in the group, it moves to a leaf of its own; others are
/// not ours to move.
bool CgroupTree::step_aside(Home& home, const std::string& folder, const CgroupPlace& place, std::string& why) const {
  const bool exempt = !files_->exists(folder + "/cgroup.type");
  const std::string members(trim(files_->read(folder + "/cgroup.procs").value_or("")));
  if (exempt || members.empty()) return true;
  const std::string self = std::to_string(place.pid);
  if (members != self) {
    why = "other processes share the control group " + folder + " with the server";
    return false;
  }
  const std::string leaf = home.folder + std::string(kServerLeaf);
  int error = files_->make_folder(leaf);
  if (error == 0) error = files_->write(leaf + "/cgroup.procs", self);
  if (error == 0) home.moved_from = folder;
  if (error != 0) why = reason("the server cannot move into " + leaf, error);
  return error == 0;
}

bool CgroupTree::hand_down(const std::shared_ptr<Home>& home, const std::string& folder,
                           const std::vector<Controller>& wanted, std::string& why) {
  bool any = false;
  for (const auto controller : wanted) {
    const std::string enable = std::string("+").append(controller_name(controller));
    int error = files_->write(folder + "/cgroup.subtree_control", enable);
    if (error == 0) error = files_->write(home->folder + "/cgroup.subtree_control", enable);
    if (error == 0) {
      homes_[index(controller)] = home;
      any = true;
      continue;
    }
    why = reason("the control group " + folder + " cannot hand its controller down", error);
    reasons_[index(controller)] = why;
  }
  return any;
}

void CgroupTree::leave(const Home& home) const {
  if (!home.moved_from.empty()) {
    // Back to where we came from, which must have no controllers for children then.
    for (const auto controller : kControllers) {
      const std::string disable = std::string("-").append(controller_name(controller));
      files_->write(home.folder + "/cgroup.subtree_control", disable);
      files_->write(home.moved_from + "/cgroup.subtree_control", disable);
    }
    files_->write(home.moved_from + "/cgroup.procs", std::to_string(pid_));
  }
  files_->remove_folder(home.folder + std::string(kServerLeaf));
  files_->remove_folder(home.folder);
}

CgroupTree::~CgroupTree() {
  std::set<const Home*> left;
  for (const auto& home : homes_)
    if (home && left.insert(home.get()).second) leave(*home);
}

std::string CgroupTree::version(Controller controller) const {
  const auto& home = homes_[index(controller)];
  return home && home->v2 ? "cgroup v2" : "cgroup v1";
}

Result<Cgroup> CgroupTree::make(const std::string& name, const CgroupLimits& limits) const {
  Cgroup group(files_);
  for (const auto controller : kControllers) {
    const auto& home = homes_[index(controller)];
    if (!home) continue;
    const auto settings = settings_for(controller, home->v2, limits);
    if (settings.empty()) continue;
    const std::string folder = home->folder + "/" + name;
    if (!contains(group.folders_, folder)) {
      const int error = files_->make_folder(folder);
      if (error != 0) {
        group.remove();
        return fail_errno("make the control group " + folder, error);
      }
      group.folders_.push_back(folder);
    }
    for (const auto& setting : settings) {
      const int error = files_->write(folder + "/" + setting.file, setting.value);
      if (error != 0 && setting.required) {
        group.remove();
        return fail_errno("set " + setting.file + " of " + folder + " to " + setting.value, error);
      }
    }
    if (controller == Controller::kMemory) group.memory_folder_ = folder;
    if (controller == Controller::kPids) group.pids_folder_ = folder;
  }
  return group;
}

}  // namespace llm_sandbox
