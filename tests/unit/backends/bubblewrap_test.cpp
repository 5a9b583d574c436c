#include "backends/bubblewrap/bubblewrap.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "backends/bubblewrap/cgroups.h"
#include "backends/bubblewrap/host_files.h"
#include "base/process.h"
#include "base/text.h"
#include "base/wait.h"
#include "sandbox/session.h"
#include "start_in_sandbox.h"
#include "temp_folder.h"

using namespace llm_sandbox;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<Sandbox> open_sandbox(BubblewrapBackend& backend, const SandboxSpec& spec = {}) {
  auto sandbox = backend.open(spec, Deadline::after(30s), {});
  if (!sandbox) FAIL(sandbox.error().text());
  return std::move(*sandbox);
}

struct Run {
  std::string out;
  std::string err;
  ExitedMessage exited;
};

Run run(Session& session, const std::string& script, const ExecLimits& limits = {}) {
  Run run;
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin", "HOME=/tmp"};
  command.limits = limits;
  auto exited = session.exec(
      command, [&](Stream stream, std::string_view text) { (stream == Stream::kStdout ? run.out : run.err) += text; },
      {});
  if (!exited) FAIL(exited.error().text());
  run.exited = *exited;
  return run;
}

/// Host processes whose command line holds `mark`.
std::vector<int> processes_with(const std::string& mark) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto pid = to_number(entry.path().filename().string());
    if (!pid || static_cast<pid_t>(*pid) == getpid()) continue;
    const auto line = read_host_file(entry.path() / "cmdline");
    if (line && line->find(mark) != std::string::npos) found.push_back(static_cast<int>(*pid));
  }
  return found;
}

/// The host's user id of a process.
std::string owner(int pid) {
  for (const auto& line : split(read_host_file("/proc/" + std::to_string(pid) + "/status").value_or(""), '\n'))
    if (line.starts_with("Uid:")) return std::string(trim(std::string_view(line).substr(4)));
  return "";
}

/// This process' folders in the hierarchies, with what is in them.
std::vector<std::string> cgroup_folders(const std::string& pid) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry("/sys/fs/cgroup", error), end; entry != end; entry.increment(error))
    if (entry->is_directory(error) && entry->path().string().find("/llm-sandbox-" + pid + "-") != std::string::npos)
      found.push_back(entry->path().string());
  return found;
}

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// A zombie is gone: a server that was killed leaves them to the host's first process, which may take its time.
bool runs(int pid) {
  const auto status = read_host_file("/proc/" + std::to_string(pid) + "/status");
  return status && status->find("\nState:\tZ") == std::string::npos;
}

std::vector<int> processes_under(const std::string& uid_line) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (const auto pid = to_number(entry.path().filename().string()))
      if (owner(static_cast<int>(*pid)) == uid_line && runs(static_cast<int>(*pid)))
        found.push_back(static_cast<int>(*pid));
  return found;
}

}  // namespace

TEST_CASE("a sandbox runs programs under an id of its own, with limits, and shows nothing of the host") {
  BubblewrapBackend backend;
  Session session(open_sandbox(backend));
  CHECK(run(session, "id -un; id -u; hostname; pwd; echo $HOME").out == "sandbox\n1000\nsandbox\n/tmp/sandbox\n/tmp\n");
  CHECK(run(session, "ls /").out ==
        run(session, "ls / | grep -vE '^(home|root|var|run|opt|srv|boot|mnt|media|sys)$'").out);
  CHECK(run(session, "cat /etc/passwd | wc -l; ls /etc | grep -E '^(shadow|ssh|sudoers|machine-id)'").out == "3\n");
  CHECK(run(session, "ls /etc/ssl").out.find("private") == std::string::npos);
  CHECK(run(session, "grep -cE '^Cap(Inh|Prm|Eff|Bnd|Amb):\t0+$' /proc/self/status").out == "5\n");
  CHECK(run(session, "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'").out ==
        "NoNewPrivs:1Seccomp:2");
}

TEST_CASE("a sandbox is writable in its workspace, /tmp, /dev/shm and terminals only, and runs nothing setuid") {
  BubblewrapBackend backend;
  Session session(open_sandbox(backend));
  CHECK(run(session, "find / -xdev -writable ! -type l 2>/dev/null").out == "/tmp\n");
  CHECK(run(session,
            "for d in $(cut -d' ' -f2 /proc/mounts); do [ -d $d ] && touch $d/.x 2>/dev/null && echo $d; done; true")
            .out == "/dev/shm\n/tmp\n");
  CHECK(run(session, "touch /sandbox/a && echo made").out == "made\n");
  CHECK(run(session,
            "for d in / /usr /etc /dev /llm-sandbox /proc/sys/kernel; do touch $d/x 2>/dev/null && echo $d; done; true")
            .out.empty());
  CHECK(run(session, "grep -vE ' [^ ]*nosuid[^ ]* ' /proc/mounts").out.empty());
  CHECK(run(session, "echo x > /proc/sys/kernel/core_pattern").exited.exit_code != 0);
  CHECK(run(session, "unshare -Ur true").exited.exit_code != 0);
  CHECK(run(session, "umount /tmp").exited.exit_code != 0);
}

TEST_CASE("workspace and /tmp share one budget of disk") {
  BubblewrapBackend backend;
  SandboxSpec spec;
  spec.limits.disk_bytes = uint64_t{4} << 20;
  Session session(open_sandbox(backend, spec));
  CHECK(run(session, "head -c 3M /dev/zero > /sandbox/a && echo fits").out == "fits\n");
  const auto full = run(session, "head -c 3M /dev/zero > /tmp/b");
  CHECK(full.err.find("No space left") != std::string::npos);
  CHECK(run(session, "rm /tmp/b; head -c 5M /dev/zero > /dev/shm/c").err.find("No space left") != std::string::npos);
}

TEST_CASE("files and runtime folders are there, read-only, with nothing beside them") {
  const test::TempFolder folder;
  folder.file("/runtime/bin/tool", "#!/bin/sh\necho tool\n", 0755);
  folder.file("/secret");

  BubblewrapBackend backend;
  SandboxSpec spec;
  const std::string runtime = folder + "/runtime";
  spec.runtime_paths = {runtime, "/usr/lib"};
  spec.files = {{"/llm-sandbox/python/runner.py", "print('runner')"}, {"/llm-sandbox/empty", ""}};
  Session session(open_sandbox(backend, spec));
  CHECK(run(session, runtime + "/bin/tool; ls " + folder.path()).out == "tool\nruntime\n");
  CHECK(run(session, "touch " + runtime + "/x").err.find("Read-only") != std::string::npos);
  CHECK(run(session,
            "cat /llm-sandbox/python/runner.py; stat -c %a /llm-sandbox/python/runner.py; wc -c < /llm-sandbox/empty")
            .out == "print('runner')555\n0\n");
  CHECK(run(session, "echo x > /llm-sandbox/python/runner.py").exited.exit_code != 0);

  spec.runtime_paths = {"/home"};
  const auto refused = backend.open(spec, Deadline::after(30s), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kPolicy);
}

TEST_CASE("the network is off, or the host's where that is set") {
  BubblewrapBackend backend;
  SandboxSpec spec;
  Session closed(open_sandbox(backend, spec));
  CHECK(run(closed, "grep -c : /proc/net/dev").out == "1\n");
  CHECK_FALSE(backend.network_reachable(spec.config));
  spec.config.network_mode = "host";
  Session shared(open_sandbox(backend, spec));
  const auto host_devices = split(read_host_file("/proc/net/dev").value_or(""), '\n');
  CHECK(run(shared, "cat /proc/net/dev | wc -l").out == std::to_string(host_devices.size() - 1) + "\n");
  CHECK(run(shared, "test -e /etc/resolv.conf && echo there").out == "there\n");
  CHECK(backend.network_reachable(spec.config));
}

TEST_CASE("control groups hold memory, processes and CPU time, and their events are told") {
  BubblewrapBackend backend;
  const auto capabilities = backend.capabilities();
  if (capabilities.front().level != Capability::Level::kSupported) {
    MESSAGE("skipped: " << capabilities.front().detail);
    return;
  }
  SandboxSpec spec;
  spec.limits.memory_bytes = uint64_t{64} << 20;
  spec.limits.processes = 20;
  spec.limits.cpus = 0.5;
  Session session(open_sandbox(backend, spec));
  CHECK(run(session, "true").exited.exit_code == 0);
  CHECK(session.sandbox()->limit_events().out_of_memory_kills == 0);

  const auto bomb = run(session, "head -c 200M /dev/zero | tail -c 190M | wc -c");
  CHECK(bomb.out != "199229440\n");
  CHECK(session.sandbox()->limit_events().out_of_memory_kills > 0);

  CHECK(session.sandbox()->limit_events().process_limit_hits == 0);
  CHECK(run(session, "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done; echo ten").out == "ten\n");
  run(session, "for i in $(seq 40); do sleep 5 & done");
  CHECK(session.sandbox()->limit_events().process_limit_hits > 0);

  const auto inner = session.sandbox()->inner_limits({});
  CHECK_FALSE(inner.processes);
  CHECK_FALSE(inner.memory_bytes);
}

TEST_CASE("after close and drain nothing of a sandbox is left on the host") {
  BubblewrapBackend backend;
  std::unique_ptr<Sandbox> sandbox = open_sandbox(backend);
  Sandbox& live = *sandbox;
  Session session(std::move(sandbox));
  const std::string mark = "31536" + std::to_string(getpid());
  run(session, "true");
  REQUIRE(run(session, "setsid sleep " + mark + " & echo").out == "\n");

  // A program that is still running when the sandbox is closed.
  Command command;
  command.argv = {"/bin/sleep", mark};
  std::thread runner([&] { static_cast<void>(session.exec(command, {}, {})); });
  std::vector<int> running;
  while ((running = processes_with(mark)).empty()) std::this_thread::yield();
  const std::string uid = owner(running.front());
  if (geteuid() == 0) {
    CHECK(to_number(words(uid).empty() ? "" : split(uid, '\t')[0]).value_or(0) >= 60'706);
    CHECK_FALSE(cgroup_folders(std::to_string(getpid())).empty());
  }
  const std::vector<int> all = processes_under(uid);
  CHECK(all.size() >= 4);  // launcher, bwrap, agent, program
  kill(running.front(), SIGKILL);
  runner.join();
  CHECK(live.id().starts_with("bubblewrap-"));
  session.close();
  session.close();
  backend.drain(Deadline::after(10s));
  CHECK(processes_with(mark).empty());
  if (geteuid() != 0) return;
  // Each of them, as the id itself may have gone to another server's sandbox by now.
  for (const int pid : all) CHECK_FALSE((owner(pid) == uid && runs(pid)));
  for (const auto& folder : cgroup_folders(std::to_string(getpid()))) {
    CAPTURE(folder);
    CHECK(fs::path(folder).filename().string().starts_with("llm-sandbox-"));  // the server's own, no sandbox's
  }
}

TEST_CASE("many rounds leave descriptors, processes and control groups where they were") {
  size_t before = 0;
  {
    BubblewrapBackend backend;
    for (int round = 0; round < 50; ++round) {
      Session session(open_sandbox(backend));
      CHECK(run(session, "echo hi").out == "hi\n");
      session.close();
      backend.drain(Deadline::after(10s));
      if (round == 4) before = open_descriptors();
    }
    CHECK(open_descriptors() == before);
  }
  CHECK(cgroup_folders(std::to_string(getpid())).empty());
}

TEST_CASE("several threads open and close sandboxes at once") {
  BubblewrapBackend backend;
  std::atomic<int> good{0};
  const auto rounds = [&] {
    for (int round = 0; round < 5; ++round) {
      auto sandbox = backend.open({}, Deadline::after(60s), {});
      if (!sandbox) return;
      Session session(std::move(*sandbox));
      Command command;
      command.argv = {"/bin/echo", "hi"};
      std::string out;
      const auto exited = session.exec(command, [&](Stream, std::string_view text) { out += text; }, {});
      if (exited && out == "hi\n") ++good;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) threads.emplace_back(rounds);
  }
  backend.drain(Deadline::after(10s));
  CHECK(good == 30);
}

TEST_CASE("what cannot be started says why") {
  BubblewrapBackend silent({"#!/bin/false\n", ""});
  const auto ended = silent.open({}, Deadline::after(30s), {});
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == ErrorCode::kBackendUnavailable);

  BubblewrapBackend talking({"#!/bin/sh\necho the reason >&2\n", ""});
  const auto talked = talking.open({}, Deadline::after(30s), {});
  REQUIRE_FALSE(talked);
  CHECK(talked.error().sentence.find("the reason") != std::string::npos);

  BubblewrapBackend wrong({"#!/bin/sh\necho 123456789012345\n", ""});
  const auto garbled = wrong.open({}, Deadline::after(30s), {});
  REQUIRE_FALSE(garbled);
  CHECK(garbled.error().code == ErrorCode::kProtocol);

  BubblewrapBackend mute({"#!/bin/sh\nexec sleep 60\n", ""});
  CHECK(mute.open({}, Deadline::after(100ms), {}).error().code == ErrorCode::kTimeout);
  std::stop_source stop;
  stop.request_stop();
  CHECK(mute.open({}, Deadline::after(30s), stop.get_token()).error().code == ErrorCode::kCancelled);

  BubblewrapBackend backend;
  SandboxSpec spec;
  spec.limits.memory_bytes = 1;
  CHECK(backend.open(spec, Deadline::after(30s), {}).error().code == ErrorCode::kInvalidArgument);
  spec = {};
  spec.config.network_mode = "bridge";
  CHECK(backend.open(spec, Deadline::after(30s), {}).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("the probe of a usable host says with what") {
  BubblewrapBackend backend;
  const auto probe = backend.probe();
  CAPTURE(probe.detail);
  CHECK(probe.usable);
  CHECK(probe.detail.starts_with("bubblewrap 0."));
  CHECK(probe.mend.empty());
  for (const auto& capability : backend.capabilities()) {
    CAPTURE(capability.name);
    CHECK_FALSE(capability.detail.empty());
  }
}

TEST_CASE("can_show says what a sandbox could read") {
  const BubblewrapBackend backend;
  CHECK(backend.can_show("/usr/bin"));
  CHECK(backend.can_show("/bin/sh"));
  CHECK_FALSE(backend.can_show("/nonexistent"));
  CHECK_FALSE(backend.can_show("relative"));
  CHECK_FALSE(backend.can_show("/etc/shadow"));
}

/// Only runs when told so, as the server that the next test kills.
TEST_CASE("hold a sandbox until killed") {
  if (std::getenv("LLM_SANDBOX_TEST_HOLD") == nullptr) return;
  BubblewrapBackend backend;
  Session session(open_sandbox(backend));
  run(session, std::string("exec sleep ") + std::getenv("LLM_SANDBOX_TEST_HOLD"));
}

TEST_CASE("a server killed with SIGKILL takes its sandboxes along, and the next one sweeps its control groups") {
  const std::string mark = "27182" + std::to_string(getpid());
  auto server = spawn({"/proc/self/exe",
                       {"server", "--test-case=hold a sandbox until killed"},
                       {"LLM_SANDBOX_TEST_HOLD=" + mark, "PATH=/usr/bin:/bin"},
                       {}});
  REQUIRE(server);
  const std::string pid = std::to_string(server->pid());
  const auto in_sandbox = [&] {
    auto found = processes_with(mark);
    std::erase(found, server->pid());
    return found;
  };
  std::vector<int> running;
  const auto deadline = Deadline::after(30s);
  while ((running = in_sandbox()).empty() && !deadline.passed()) std::this_thread::yield();
  REQUIRE_FALSE(running.empty());
  server->kill(SIGKILL);
  server->wait(Deadline::after(10s));
  while (!in_sandbox().empty() && !deadline.passed()) std::this_thread::yield();
  CHECK(in_sandbox().empty());

  BubblewrapBackend next;
  static_cast<void>(next.capabilities());
  // Another test's server may be the one that sweeps it, and hold its lock meanwhile.
  while (!cgroup_folders(pid).empty() && !deadline.passed()) std::this_thread::yield();
  CHECK(cgroup_folders(pid).empty());
}

TEST_CASE("everything above holds for an ordinary user too") {
  if (geteuid() != 0) return;
  const test::TempFolder folder;
  const std::string copy = folder + "/unit_backends";
  fs::copy_file("/proc/self/exe", copy);
  const auto ran = run_and_capture({"/usr/bin/setpriv",
                                    {"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", copy},
                                    {"PATH=/usr/bin:/bin"},
                                    {}},
                                   Deadline::after(240s));
  REQUIRE(ran);
  CAPTURE(ran->out);
  CHECK(ran->exit_code == 0);
}
