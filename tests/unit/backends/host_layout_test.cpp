#include "backends/bubblewrap/host_layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "backends/bubblewrap/arguments.h"
#include "base/text.h"
#include "temp_folder.h"

using namespace llm_sandbox;
using test::TempFolder;
namespace fs = std::filesystem;

namespace {

std::string arguments_for(const HostLayout& layout) {
  BwrapPlan plan;
  plan.layout = layout;
  plan.disk_bytes = 1000;
  plan.seccomp_descriptor = 4;
  plan.files = {{"/llm-sandbox/agent", 6}};
  plan.runtime_mounts = {"/home/me/.pyenv/versions/3.12"};
  plan.program = {"/llm-sandbox/agent"};
  return join(bwrap_arguments(plan), " ");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string refusal(const std::string& path, const std::string& home = "") {
  const auto mounts = runtime_mounts({path}, home);
  if (mounts) return "";
  CHECK(mounts.error().code == ErrorCode::kPolicy);
  return mounts.error().sentence;
}

}  // namespace

TEST_CASE("on a merged-usr host the links into /usr are made again") {
  const TempFolder root;
  for (const std::string name : {"bin", "lib", "lib64", "sbin"}) {
    root.folder(std::string("/usr/") + name);
    root.link(std::string("/") + name, std::string("usr/") + name);
  }
  const auto arguments = arguments_for(HostLayout::look(root.path()));
  CHECK(contains(arguments,
                 "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib "
                 "--symlink usr/lib64 /lib64 "));
}

TEST_CASE("on a host with folders of their own, and links that lead elsewhere, these are mounted") {
  const TempFolder root;
  for (const auto* const path : {"/usr/bin", "/bin", "/lib", "/elsewhere"}) root.folder(path);
  root.link("/sbin", "/usr/bin");
  root.link("/lib64", root + "/elsewhere");
  root.link("/lib32", "usr/lib32");
  const auto arguments = arguments_for(HostLayout::look(root.path()));
  CHECK(
      contains(arguments, "--ro-bind /bin /bin --symlink usr/bin /sbin --ro-bind /lib /lib --ro-bind /lib64 /lib64 "));
  CHECK_FALSE(contains(arguments, "/lib32"));  // leads nowhere
}

TEST_CASE("a folder whose name only begins like a system folder's is not shown") {
  const TempFolder root;
  for (const auto* const path : {"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/library", "/lib-private"})
    root.folder(path);
  const auto arguments = arguments_for(HostLayout::look(root.path()));
  for (const std::string path : {"/lib", "/lib32", "/lib64", "/libx32"})
    CHECK(contains(arguments, "--ro-bind " + path + " " + path + " "));
  CHECK_FALSE(contains(arguments, "/library"));
  CHECK_FALSE(contains(arguments, "/lib-private"));
}

TEST_CASE("of /etc only what is listed and exists is shown") {
  const TempFolder root;
  for (const auto* const path : {"/etc/shadow", "/etc/passwd", "/etc/ssh/ssh_host_rsa_key", "/etc/ssl/private/key",
                                 "/etc/ssl/certs/a.pem", "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/python3.11/x",
                                 "/etc/resolv.conf", "/etc/sudoers", "/etc/machine-id"})
    root.file(path);
  const auto layout = HostLayout::look(root.path());
  auto etc = layout.etc;
  std::sort(etc.begin(), etc.end());
  CHECK(etc == std::vector<std::string>{"/etc/ld.so.cache", "/etc/python3.11", "/etc/ssl/certs"});
  REQUIRE(layout.etc_files.size() == 1);
  CHECK(layout.etc_files[0].path == "/etc/nsswitch.conf");
  CHECK(layout.etc_with_network == std::vector<std::string>{"/etc/resolv.conf"});
}

TEST_CASE("bwrap is told everything that contains a program, and closes the root last") {
  const auto arguments = arguments_for(HostLayout::look());
  for (const std::string part :
       {"--unshare-all --unshare-user --disable-userns --new-session --die-with-parent", "--as-pid-1 --cap-drop ALL",
        "--uid 1000 --gid 1000 --hostname sandbox", "--clearenv --seccomp 4", "--proc /proc --dev /dev",
        "--perms 1777 --size 1000 --tmpfs /dev/shm", "--perms 1777 --size 1000 --tmpfs /tmp",
        "--perms 0700 --dir /tmp/sandbox --symlink tmp/sandbox /sandbox",
        "--perms 0755 --dir /home/me/.pyenv/versions --ro-bind /home/me/.pyenv/versions/3.12 "
        "/home/me/.pyenv/versions/3.12",
        "--perms 0555 --file 6 /llm-sandbox/agent"}) {
    CAPTURE(part);
    CHECK(contains(arguments, part));
  }
  CHECK(arguments.ends_with(" --remount-ro /dev --remount-ro / --chdir /sandbox -- /llm-sandbox/agent"));
  CHECK_FALSE(contains(arguments, "--share-net"));
  CHECK_FALSE(contains(arguments, "/etc/resolv.conf"));
}

TEST_CASE("runtime folders that would show more than a runtime are refused") {
  for (const std::string path : {"/",
                                 "/home",
                                 "/root",
                                 "/etc",
                                 "/etc/ssl",
                                 "/proc",
                                 "/proc/self",
                                 "/sys",
                                 "/dev",
                                 "/run",
                                 "/run/user",
                                 "/var",
                                 "/var/lib",
                                 "/tmp",
                                 "/opt",
                                 "/boot",
                                 "/usr/../etc",
                                 "/home/",
                                 "//etc",
                                 "/sandbox",
                                 "relative",
                                 "",
                                 "/nonexistent/runtime"}) {
    CAPTURE(path);
    CHECK_FALSE(refusal(path).empty());
  }
  const TempFolder root;
  root.folder("/me/.pyenv/versions/3.12");
  CHECK(refusal(root + "/me", root + "/me").find("home") != std::string::npos);
  CHECK(refusal(root.path(), root + "/me").find("home") != std::string::npos);
  CHECK(refusal(root + "/me/.pyenv/versions/3.12", root + "/me").empty());
  root.link("/innocent", "/etc");
  CHECK(refusal(root + "/innocent").find("/etc") != std::string::npos);
}

TEST_CASE("runtime folders below /usr need no mount, and outer folders come first") {
  const TempFolder root;
  root.folder("/a/b");
  CHECK(*runtime_mounts({root + "/a/b", "/usr/lib/python3", "/usr", "/usr/", root + "//a/", root + "/a"}, "") ==
        std::vector<std::string>{root + "/a", root + "/a/b"});
}

TEST_CASE("anybody reaches what others may enter and read, whatever the server itself may") {
  const TempFolder root;
  root.file("/open/file");
  root.file("/closed/file");
  root.file("/open/program", "x", 0700);
  root.file("/open/private", "x", 0600);
  fs::permissions(root + "/closed", fs::perms(0700));
  root.link("/open/way", root + "/closed/file");
  root.link("/closed/way", root + "/open/file");
  struct Row {
    std::string path;
    bool anybody;
  };
  for (const auto& [path, anybody] :
       {Row{"/open", true}, Row{"/open/file", true}, Row{"/open/program", false}, Row{"/open/private", false},
        Row{"/closed", false}, Row{"/closed/file", false}, Row{"/open/way", false}, Row{"/closed/way", false}}) {
    CAPTURE(path);
    CHECK(can_reach(root + path, Viewer::kAnybody) == anybody);
    CHECK(can_reach(root + path, Viewer::kSelf));
  }
  CHECK_FALSE(can_reach(root + "/missing", Viewer::kAnybody));
  CHECK_FALSE(can_reach(root + "/missing", Viewer::kSelf));
}
