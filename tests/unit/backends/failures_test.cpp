#include "backends/bubblewrap/failures.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "backends/bubblewrap/bubblewrap.h"
#include "base/process.h"
#include "start_in_sandbox.h"
#include "temp_folder.h"

using namespace llm_sandbox;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

HostFacts with_switch(std::optional<std::string> HostFacts::*which, const char* value) {
  HostFacts facts;
  facts.*which = value;
  return facts;
}

HostFacts with_flag(bool HostFacts::*which) {
  HostFacts facts;
  facts.*which = true;
  return facts;
}

/// What the probe of an ordinary user says in surroundings that a shell line makes, as root of a user namespace.
std::string probe_after(const std::string& prepare, const std::string& become_user) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  const std::string script = prepare + " && LLM_SANDBOX_TEST_PROBE=1 exec " + become_user + " " + self +
                             " --no-intro --test-case='say what the probe says'";
  const auto ran = run_and_capture({"/usr/bin/unshare",
                                    {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script},
                                    {"PATH=/usr/bin:/bin"},
                                    {}},
                                   Deadline::after(60s));
  REQUIRE(ran);
  return ran->out + ran->err;
}

constexpr const char* kBecomeUser = "unshare --user --map-user=1000 --map-group=1000";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what bwrap says is explained by what the host forbids") {
  const char* const no_permission =
      "bwrap: No permissions to create new namespace, likely because the kernel does not …";
  const char* const no_space =
      "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)";
  struct Row {
    std::string said;
    HostFacts facts;
    const char* why;
    const char* mend;
  };
  for (const auto& [said, facts, why, mend] : {
           Row{no_permission, with_switch(&HostFacts::userns_clone, "0"), "unprivileged_userns_clone is 0",
               "kernel.unprivileged_userns_clone=1"},
           Row{no_space, with_switch(&HostFacts::max_user_namespaces, "0"), "max_user_namespaces is 0",
               "user.max_user_namespaces=10000"},
           Row{no_space, with_switch(&HostFacts::max_user_namespaces, "500"), "limit on their number",
               "user.max_user_namespaces=10000"},
           Row{"bwrap: setting up uid map: Permission denied", with_switch(&HostFacts::apparmor_restricts, "1"),
               "AppArmor forbids it", "AppArmor profile"},
           Row{"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
               with_switch(&HostFacts::apparmor_restricts, "1"), "AppArmor forbids it",
               "kernel.apparmor_restrict_unprivileged_userns=0"},
           Row{no_permission, with_flag(&HostFacts::chrooted), "chroot", "pivot_root"},
           Row{no_permission, {}, "No permissions", "container"},
           Row{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", with_flag(&HostFacts::proc_masked),
               "/proc of its own", "systempaths=unconfined"},
           Row{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", {}, "/proc of its own", "fully"},
           Row{"bwrap: --disable-userns is not supported in setuid mode", with_flag(&HostFacts::bwrap_setuid),
               "setuid root", "chmod u-s"},
           Row{"Cannot join the control group /x: No such file or directory\n",
               {},
               "Cannot join the control group",
               ""},
           Row{"", {}, "said nothing", ""},
       }) {
    CAPTURE(said);
    const auto error = explain_failure(said, facts);
    CHECK(error.code == ErrorCode::kBackendUnavailable);
    CAPTURE(error.text());
    CHECK(contains(error.sentence, why));
    CHECK(contains(error.hint, mend));
  }
}

TEST_CASE("bwrap's version is compared by number") {
  for (const std::string good : {"bubblewrap 0.8.0\n", "bubblewrap 0.10.0", "bubblewrap 0.11.0\n", "bubblewrap 1.0"})
    CHECK(accept_version(good, "/usr/bin/bwrap"));
  for (const std::string bad : {"bubblewrap 0.7.9\n", "bubblewrap 0.4.1", "bubblewrap x", "busybox", ""}) {
    CAPTURE(bad);
    const auto version = accept_version(bad, "/usr/bin/bwrap");
    REQUIRE_FALSE(version);
    CHECK(version.error().code == ErrorCode::kBackendUnavailable);
    CHECK_FALSE(version.error().hint.empty());
  }
}

TEST_CASE("an old bwrap in PATH is named with its version") {
  const test::TempFolder folder;
  folder.file("/bwrap", "#!/bin/sh\necho bubblewrap 0.4.1\n", 0755);
  BubblewrapBackend backend({embedded::agent(), folder.path()});
  const auto probe = backend.probe();
  CHECK_FALSE(probe.usable);
  CHECK(contains(probe.detail, "0.4.1"));
  CHECK(contains(probe.detail, folder + "/bwrap"));
}

TEST_CASE("find_bwrap looks beyond PATH and says how to install it") {
  CHECK(find_bwrap("/nonexistent").value() == "/usr/bin/bwrap");
}

/// Only speaks when told so, in the surroundings that the tests below make.
TEST_CASE("say what the probe says") {
  if (std::getenv("LLM_SANDBOX_TEST_PROBE") == nullptr) return;
  BubblewrapBackend backend({embedded::agent(), "/usr/bin"});
  const auto probe = backend.probe();
  MESSAGE(probe.detail << " MEND " << probe.mend);
}

TEST_CASE("a host where no more user namespaces can be made is told so") {
  const auto said = probe_after("echo 1 > /proc/sys/user/max_user_namespaces", kBecomeUser);
  CAPTURE(said);
  CHECK(contains(said, "bubblewrap cannot make a user namespace"));
  CHECK(contains(said, "MEND Raise it: sudo sysctl -w user.max_user_namespaces"));
}

TEST_CASE("a container whose /proc is covered in part is told so") {
  const auto said = probe_after("mount -t tmpfs none /proc/sys/vm", kBecomeUser);
  CAPTURE(said);
  CHECK(contains(said, "may not mount a /proc of its own"));
  CHECK(contains(said, "systempaths=unconfined"));
}

TEST_CASE("root in a user namespace that maps no other id is told so") {
  const auto said = probe_after("true", "");
  CAPTURE(said);
  CHECK(contains(said, "maps no id for a sandbox"));
}

TEST_CASE("the launcher's failing steps are told apart from a program's end") {
  const auto& launcher = test::toolbox().launcher;
  int lifeline[2];
  REQUIRE(pipe2(lifeline, O_CLOEXEC) == 0);
  const UniqueFd watched(lifeline[0]);
  UniqueFd held(lifeline[1]);
  const auto launch = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"launcher", "--lifeline", "4"});
    return run_and_capture({"/proc/self/fd/3", arguments, {}, {{launcher.fd(), 3}, {watched.get(), 4}}},
                           Deadline::after(10s))
        .value();
  };
  struct Row {
    std::vector<std::string> arguments;
    std::string says;
  };
  for (const auto& [arguments, says] :
       {Row{{}, "bad argument"}, Row{{"--last-descriptor", "4", "--"}, "bad argument"},
        Row{{"--last-descriptor", "x", "--", "/bin/true"}, "bad argument, x"}, Row{{"--", "/bin/true"}, "bad argument"},
        Row{{"--nonsense", "3", "--", "/bin/true"}, "--nonsense"},
        Row{{"--last-descriptor", "4", "--lifeline", "x", "--", "/bin/true"}, "bad argument, x"},
        Row{{"--join", "/nonexistent/cgroup.procs", "--last-descriptor", "4", "--", "/bin/true"},
            "Cannot join the control group /nonexistent/cgroup.procs: No such file or directory"},
        Row{{"--last-descriptor", "4", "--", "/nonexistent"},
            "Cannot start /nonexistent: No such file or directory"}}) {
    CAPTURE(says);
    const auto capture = launch(arguments);
    CHECK(capture.exit_code == 125);
    CHECK(contains(capture.err, says));
    CHECK(capture.err.find('\n') == capture.err.size() - 1);
  }
  const auto ran = launch({"--last-descriptor", "4", "--", "/bin/sh", "-c",
                           "ls /proc/self/fd | wc -l; awk '/^Max core/ { print $5, $6 }' /proc/self/limits; exit 7"});
  CHECK(ran.exit_code == 7);
  rlimit ours{};
  getrlimit(RLIMIT_CORE, &ours);
  const bool may_raise = geteuid() == 0 || ours.rlim_max > 0;
  CHECK(ran.out == (may_raise ? "4\n1 1\n" : "4\n0 0\n"));
  if (geteuid() != 0) {
    CHECK(contains(launch({"--id", "7000", "--last-descriptor", "4", "--", "/bin/true"}).err, "supplementary groups"));
    return;
  }
  const auto as_other = launch({"--id", "1879048192", "--last-descriptor", "4", "--", "/usr/bin/id"});
  CHECK(as_other.out == "uid=1879048192 gid=1879048192 groups=1879048192\n");

  held.reset();
  const auto cut = launch({"--last-descriptor", "4", "--", "/bin/sh", "-c", "setsid sleep 600 & exec sleep 600"});
  CHECK(cut.exit_code == 128 + SIGKILL);
}
