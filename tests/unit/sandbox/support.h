#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/process.h"
#include "sandbox/agent/messages.h"
#include "sandbox/channel.h"
#include "sandbox/sandbox.h"
#include "sandbox/session.h"
#include "support/processes.h"

namespace llm_sandbox::testing {

using namespace std::chrono_literals;
using namespace std::string_literals;
namespace fs = std::filesystem;

/// Long enough for a busy machine; what waits so long has failed.
inline Deadline soon() { return Deadline::after(20s); }

struct Streams {
  UniqueFd ours;
  UniqueFd theirs;
};

inline Streams connected_streams() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/llm-sandbox-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path(const std::string& below = "") const { return below.empty() ? path_ : path_ + "/" + below; }

 private:
  std::string path_;
};

/// How the real agent is started for a test.
enum class Place {
  kProcess,  ///< an ordinary child process: no isolation at all
  kPidOne,   ///< PID 1 of a namespace made by bwrap, under an unprivileged id
};

/// Whether bwrap can make a PID namespace here; says so if not.
inline bool has_pid_namespaces() {
  static const bool works = [] {
    const auto tried = run_and_capture({"/usr/bin/bwrap",
                                        {"bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"},
                                        {"PATH=/usr/bin:/bin"},
                                        {}},
                                       Deadline::after(20s));
    return tried && tried->exit_code == 0;
  }();
  if (!works) MESSAGE("skipped: bwrap with user and PID namespaces");
  return works;
}

/// The agent binary just built, started over a socket pair, in a sandbox that is none: for tests of the agent and of
/// the code that talks to it.
class AgentSandbox : public Sandbox {
 public:
  explicit AgentSandbox(Place place = Place::kProcess) : AgentSandbox(place, connected_streams()) {}

  Channel& channel() override { return channel_; }
  std::string_view id() const override { return "test"; }
  LimitEvents limit_events() override { return {}; }
  ExecLimits inner_limits(ExecLimits limits) const override { return limits; }
  void close() noexcept override {
    channel_.close();
    process_ = {};
  }
  Child& process() { return process_; }
  Place place() const { return place_; }

 private:
  AgentSandbox(Place place, Streams streams) : place_(place), channel_(std::move(streams.ours)) {
    SpawnSpec spec{LLM_SANDBOX_AGENT, {"llm-sandbox-agent"}, {"SECRET=agent"}, {}};
    const UniqueFd stray(open("/dev/null", O_RDONLY | O_CLOEXEC));
    spec.descriptors = {{streams.theirs.get(), 0}, {streams.theirs.get(), 1}, {2, 2}, {stray.get(), 9}};
    if (place == Place::kPidOne) {
      spec.executable = "/usr/bin/bwrap";
      spec.argv = {"bwrap",
                   "--unshare-user",
                   "--uid",
                   "1000",
                   "--gid",
                   "1000",
                   "--unshare-pid",
                   "--bind",
                   "/",
                   "/",
                   "--proc",
                   "/proc",
                   "--dev",
                   "/dev",
                   "--die-with-parent",
                   "--as-pid-1",
                   "--",
                   LLM_SANDBOX_AGENT};
    }
    auto child = spawn(spec);
    REQUIRE(child);
    process_ = std::move(*child);
    const auto ready = channel_.receive(soon(), {});
    REQUIRE(ready);
    REQUIRE(ready->type == FrameType::kReady);
    const auto message = decode<ReadyMessage>(ready->payload);
    REQUIRE(message);
    REQUIRE(message->version == kAgentProtocolVersion);
    if (place == Place::kPidOne) REQUIRE(message->pid == 1);
  }

  Place place_;
  Channel channel_;
  Child process_;
};

/// What a test plays in an agent's place, on a thread of its own, until its script ends and the stream with it.
class FakeAgentSandbox : public Sandbox {
 public:
  using Script = std::function<void(int fd)>;
  explicit FakeAgentSandbox(Script script) : FakeAgentSandbox(std::move(script), connected_streams()) {}
  ~FakeAgentSandbox() override { FakeAgentSandbox::close(); }

  Channel& channel() override { return channel_; }
  std::string_view id() const override { return "fake"; }
  LimitEvents limit_events() override { return {}; }
  ExecLimits inner_limits(ExecLimits limits) const override { return limits; }
  void close() noexcept override { channel_.close(); }

 private:
  FakeAgentSandbox(Script script, Streams streams)
      : channel_(std::move(streams.ours)),
        thread_([script = std::move(script), theirs = std::move(streams.theirs)] { script(theirs.get()); }) {}

  Channel channel_;
  std::jthread thread_;  ///< joined last; by then the channel is closed and every read of the script has ended
};

inline Command shell(const std::string& script, const std::string& folder = "/tmp") {
  Command command;
  command.argv = {"sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.folder = folder;
  command.limits.wall = 20s;
  return command;
}

struct Ran {
  Result<ExitedMessage> end = ExitedMessage{};
  std::string out;
  std::string err;
};

inline Ran run(Session& session, const Command& command, std::stop_token stop = {}) {
  Ran ran;
  ran.end = session.exec(
      command, [&](Stream stream, std::string_view bytes) { (stream == Stream::kStdout ? ran.out : ran.err) += bytes; },
      std::move(stop));
  return ran;
}

/// Waits for what happens in another process; false if it does not.
inline bool eventually(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(20s);
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

}  // namespace llm_sandbox::testing
