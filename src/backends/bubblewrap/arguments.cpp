#include "backends/bubblewrap/arguments.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "sandbox/sandbox.h"

namespace llm_sandbox {
namespace {

constexpr uint64_t kMaxSharedMemory = uint64_t{64} << 20;

class Arguments {
 public:
  void add(std::initializer_list<std::string> more) { list_.insert(list_.end(), more); }
  void add(const std::vector<std::string>& more) { list_.insert(list_.end(), more.begin(), more.end()); }
  void read_only(const std::string& path) { mount("--ro-bind", path, path); }
  void mount(const std::string& how, const std::string& source, const std::string& path) {
    add_parents(path);
    add({how, source, path});
  }
  void empty_folder(const std::string& path) {
    add_parents(path);
    add({"--perms", "0555", "--dir", path});
  }
  void limited_tmpfs(const std::string& path, uint64_t bytes) {
    add({"--perms", "1777", "--size", std::to_string(bytes), "--tmpfs", path});
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  /// bwrap makes missing ones itself, but closed to others.
  void add_parents(const std::string& path) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const std::string parent = path.substr(0, slash);
      if (parents_.insert(parent).second) add({"--perms", "0755", "--dir", parent});
    }
  }

  std::vector<std::string> list_;
  std::set<std::string> parents_;
};

/// Every namespace of its own, no way to make more, no capability, no terminal, no life without the server.
void add_isolation(Arguments& arguments, const BwrapPlan& plan) {
  arguments.add({"--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"});
  if (plan.share_network) arguments.add({"--share-net"});
  arguments.add({"--as-pid-1", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"});
  arguments.add({"--clearenv", "--seccomp", std::to_string(plan.seccomp_descriptor)});
}

void add_base_system(Arguments& arguments, const BwrapPlan& plan) {
  for (const auto& place : plan.layout.system) {
    if (place.link_target.empty())
      arguments.read_only(place.path);
    else
      arguments.add({"--symlink", place.link_target, place.path});
  }
  for (const auto& path : plan.layout.etc) arguments.read_only(path);
  if (plan.share_network)
    for (const auto& path : plan.layout.etc_with_network) arguments.read_only(path);
  arguments.add({"--proc", "/proc", "--dev", "/dev"});
  arguments.limited_tmpfs("/dev/shm", std::min(kMaxSharedMemory, plan.disk_bytes));
}

/// One file system for both, so that workspace and /tmp share the budget.
void add_writable_places(Arguments& arguments, const BwrapPlan& plan) {
  const std::string temporary(kTemporary);
  const std::string workspace(kWorkspace);
  arguments.limited_tmpfs(temporary, plan.disk_bytes);
  arguments.add({"--perms", "0700", "--dir", temporary + workspace});
  arguments.add({"--symlink", temporary.substr(1) + workspace, workspace});
}

/// Copied into the root, which is read-only in the end: a mount for each would cost more.
void add_files(Arguments& arguments, const BwrapPlan& plan) {
  for (const auto& [path, descriptor] : plan.files)
    arguments.add({"--perms", "0555", "--file", std::to_string(descriptor), path});
}

void add_mounts(Arguments& arguments, const BwrapPlan& plan) {
  for (const auto& [host_path, path, writable] : plan.mounts) {
    if (host_path.empty())
      arguments.empty_folder(path);
    else
      arguments.mount(writable ? "--bind" : "--ro-bind", host_path, path);
  }
}

}  // namespace

const std::vector<SyntheticFile>& synthetic_files() {
  static const std::vector<SyntheticFile> files = {
      {"/etc/passwd",
       "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/tmp:/bin/sh\n"
       "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
      {"/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"},
      {"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
      {"/etc/hostname", "sandbox\n"},
  };
  return files;
}

std::vector<std::string> bwrap_arguments(const BwrapPlan& plan) {
  Arguments arguments;
  arguments.add({"bwrap"});
  add_isolation(arguments, plan);
  add_base_system(arguments, plan);
  add_writable_places(arguments, plan);
  for (const auto& path : plan.runtime_mounts) arguments.read_only(path);
  add_files(arguments, plan);
  add_mounts(arguments, plan);
  // Last: what was made by hand above must be complete.
  arguments.add({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", std::string(kWorkspace), "--"});
  arguments.add(plan.program);
  return arguments.take();
}

}  // namespace llm_sandbox
