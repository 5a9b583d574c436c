#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "backends/bubblewrap/cgroup_files.h"
#include "backends/bubblewrap/host_files.h"
#include "base/text.h"
#include "temp_folder.h"

namespace llm_sandbox::test {

/// FAKE: a cgroup v2 hierarchy with memory, pids and cpu in a temporary folder, for machines whose controllers are v1.
/// Follows the kernel's rules (cgroup-v2.rst) as far as our code meets them: controllers are handed down by
/// cgroup.subtree_control, no processes beside controllers for children except in the root, EBUSY for groups in use.
class FakeCgroup2 : public CgroupFiles {
 public:
  /// `root_is_real`: the folder is the hierarchy's root; else a delegated group as in a container.
  explicit FakeCgroup2(bool root_is_real) { populate(tree_.path(), "memory pids cpu", root_is_real); }

  const std::string& root() const { return tree_.path(); }

  int make_folder(const std::string& path) override {
    if (!refused_.empty() && path.starts_with(refused_ + "/")) return EACCES;
    if (const int error = CgroupFiles::make_folder(path)) return error;
    populate(path, read(parent(path) + "/cgroup.subtree_control").value_or(""), false);
    return 0;
  }

  int write(const std::string& path, const std::string& text) override {
    if (!exists(path)) return ENOENT;
    if (path.ends_with("/cgroup.procs")) return move(parent(path), text);
    if (path.ends_with("/cgroup.subtree_control")) return hand_down(parent(path), text);
    std::ofstream(path) << text;
    return 0;
  }

  int remove_folder(const std::string& path) override {
    if (!exists(path)) return ENOENT;
    if (!members(path).empty() || !folders(path).empty()) return EBUSY;
    std::filesystem::remove_all(path);
    return 0;
  }

  /// No group can be made below this one any more.
  void refuse_below(const std::string& path) { refused_ = path; }
  std::vector<std::string> members(const std::string& group) const {
    return words(join(split(read(group + "/cgroup.procs").value_or(""), '\n'), " "));
  }
  /// As systemd does in the groups above a delegated one.
  void hand_down_all(const std::string& group) {
    for (const auto* const change : {"+memory", "+pids", "+cpu"}) hand_down(group, change);
  }
  void put(const std::string& group, const std::string& pid) { move(group, pid); }

 private:
  static std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

  static void store(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  void populate(const std::string& group, const std::string& controllers, bool root_is_real) const {
    store(group + "/cgroup.controllers", controllers);
    store(group + "/cgroup.subtree_control", "");
    store(group + "/cgroup.procs", "");
    if (!root_is_real) store(group + "/cgroup.type", "domain");
    for (const auto& controller : words(controllers)) {
      if (controller == "memory") {
        store(group + "/memory.max", "max");
        store(group + "/memory.swap.max", "max");
        store(group + "/memory.events", "low 0\noom 1\noom_kill 3\n");
      }
      if (controller == "pids") {
        store(group + "/pids.max", "max");
        store(group + "/pids.events", "max 5\n");
      }
      if (controller == "cpu") store(group + "/cpu.max", "max 100000");
    }
  }

  int move(const std::string& group, const std::string& pid) {
    const bool is_root = !exists(group + "/cgroup.type");
    if (!is_root && !read(group + "/cgroup.subtree_control").value_or("").empty()) return EBUSY;
    std::vector<std::string> groups{root()};
    for (size_t i = 0; i < groups.size(); ++i)
      for (const auto& name : folders(groups[i])) groups.push_back(groups[i] + "/" + name);
    for (const auto& each : groups) {
      auto left = members(each);
      std::erase(left, pid);
      if (each == group) left.push_back(pid);
      store(each + "/cgroup.procs", left.empty() ? "" : join(left, "\n") + "\n");
    }
    return 0;
  }

  int hand_down(const std::string& group, const std::string& change) {
    const std::string controller = change.substr(1);
    const auto offered = words(read(group + "/cgroup.controllers").value_or(""));
    auto enabled = words(read(group + "/cgroup.subtree_control").value_or(""));
    if (change[0] == '-') {
      std::erase(enabled, controller);
    } else {
      if (std::find(offered.begin(), offered.end(), controller) == offered.end()) return ENOENT;
      if (exists(group + "/cgroup.type") && !members(group).empty()) return EBUSY;
      enabled.push_back(controller);
    }
    store(group + "/cgroup.subtree_control", join(enabled, " "));
    for (const auto& name : folders(group)) store(group + "/" + name + "/cgroup.controllers", join(enabled, " "));
    return 0;
  }

  TempFolder tree_;
  std::string refused_;
};

}  // namespace llm_sandbox::test
