#include "backends/bubblewrap/bubblewrap.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "backends/bubblewrap/cgroups.h"
#include "backends/bubblewrap/failures.h"
#include "backends/bubblewrap/host_ids.h"
#include "backends/bubblewrap/host_layout.h"
#include "backends/bubblewrap/reaper.h"
#include "backends/bubblewrap/settings.h"
#include "backends/bubblewrap/start.h"
#include "base/text.h"
#include "base/wait.h"
#include "sandbox/agent/messages.h"

namespace llm_sandbox {

using namespace std::chrono_literals;

namespace {

/// Processes that a sandbox needs beside the program's own, inside its pids limit: the launcher, bwrap, which waits for
/// PID 1, and the agent, which is PID 1.
constexpr uint32_t kOwnProcesses = 3;
constexpr size_t kMaxErrorText = size_t{64} << 10;

bool is_root() { return geteuid() == 0; }

class BubblewrapSandbox final : public Sandbox {
 public:
  BubblewrapSandbox(std::string id, UniqueFd stream, HostResources resources, SandboxLimits limits,
                    std::shared_ptr<Reaper> reaper)
      : id_(std::move(id)),
        channel_(std::move(stream)),
        resources_(std::move(resources)),
        limits_(limits),
        reaper_(std::move(reaper)) {}
  ~BubblewrapSandbox() override { close(); }

  Channel& channel() override { return channel_; }
  std::string_view id() const override { return id_; }
  LimitEvents limit_events() override { return resources_ ? resources_->cgroup.events() : last_events_; }

  ExecLimits inner_limits(ExecLimits limits) const override {
    if (!holds_memory_) limits.memory_bytes = limits_.memory_bytes;
    if (!holds_pids_) limits.processes = limits_.processes;
    return limits;
  }

  void close() noexcept override {
    if (!resources_) return;
    last_events_ = resources_->cgroup.events();
    channel_.close();
    reaper_->bury(std::move(*resources_));
    resources_.reset();
  }

  /// Waits until the agent speaks. The error is the channel's; why the stream ended is for the caller to find out.
  Result<void> wait_until_ready(Deadline deadline, const std::stop_token& stop) {
    auto frame = channel_.receive(deadline, stop);
    if (!frame) return fail(std::move(frame.error()));
    if (frame->type != FrameType::kReady) return fail(ErrorCode::kProtocol, "the agent did not begin with 'ready'");
    const auto ready = decode<ReadyMessage>(frame->payload);
    if (!ready) return fail(Error(ready.error()));
    if (ready->version != kAgentProtocolVersion)
      return fail(ErrorCode::kProtocol, "the agent speaks version " + std::to_string(ready->version) + ", not " +
                                            std::to_string(kAgentProtocolVersion));
    return {};
  }

 private:
  std::string id_;
  Channel channel_;
  std::optional<HostResources> resources_;  ///< empty once closed
  SandboxLimits limits_;
  std::shared_ptr<Reaper> reaper_;
  LimitEvents last_events_;
  bool holds_memory_ = resources_->cgroups->holds(Controller::kMemory);
  bool holds_pids_ = resources_->cgroups->holds(Controller::kPids);
};

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<Pair> make_stream() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair", errno);
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<Pair> make_error_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe", errno);
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// What a sandbox that is ending says on its stderr.
std::string read_errors(int fd, Deadline deadline) {
  std::string text;
  const StopWakeup no_stop{std::stop_token{}};
  std::array<char, 4096> buffer;
  while (text.size() < kMaxErrorText && wait_for(fd, POLLIN, deadline, no_stop) == WaitResult::kReady) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

StartRequest request_for(const SandboxSpec& spec, std::vector<std::string> mounts, const HostResources& resources) {
  StartRequest request;
  request.runtime_mounts = std::move(mounts);
  request.files = &spec.files;
  request.mounts = spec.mounts;
  request.disk_bytes = spec.limits.disk_bytes;
  request.share_network = shares_network(spec.config);
  request.memory_is_held = resources.cgroups->holds(Controller::kMemory);
  request.join_files = resources.cgroup.join_files();
  if (resources.id) request.host_id = resources.id->id();
  return request;
}

/// A server run as root gives the folders and sockets that a sandbox may use to the sandbox's id.
Result<void> give_away(const std::vector<SandboxMount>& mounts, const HostResources& resources) {
  if (!resources.id) return {};
  const uid_t id = resources.id->id();
  for (const auto& mount : mounts)
    if (mount.writable && lchown(mount.host_path.c_str(), id, id) != 0)
      return fail_errno("Give " + mount.host_path + " to the sandbox", errno);
  return {};
}

Result<void> check_limits(const SandboxLimits& limits) {
  constexpr uint64_t kLeastMemory = uint64_t{16} << 20;
  constexpr uint64_t kLeastDisk = uint64_t{64} << 10;
  if (limits.memory_bytes < kLeastMemory)
    return fail(ErrorCode::kInvalidArgument,
                "A memory limit of " + format_bytes(limits.memory_bytes) + " is too small for a sandbox.",
                "Set SANDBOX_MEMORY to at least " + format_bytes(kLeastMemory) + ".");
  if (limits.disk_bytes < kLeastDisk || limits.processes == 0)
    return fail(ErrorCode::kInvalidArgument,
                "A sandbox needs " + format_bytes(kLeastDisk) + " of disk and one process at the least.");
  return {};
}

Result<void> check_cpus(const std::optional<double>& cpus, const CgroupTree& cgroups) {
  if (!cpus || cgroups.holds(Controller::kCpu)) return {};
  return fail(ErrorCode::kInvalidArgument,
              "SANDBOX_CPUS (or SANDBOX_CPU_COUNT) limits the CPU time, which needs a control group, and " +
                  cgroups.why_not(Controller::kCpu) + ".",
              "Unset it, or start the server with: systemd-run --user --scope -p Delegate=yes llm-sandbox");
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the server never calls setenv
  return value == nullptr ? "" : value;
}

}  // namespace

struct BubblewrapBackend::State {
  explicit State(Options with) : options(std::move(with)) {
    if (options.path_list.empty()) options.path_list = environment("PATH");
  }

  /// Prepared at first use; asked again while it fails.
  Result<std::shared_ptr<const Toolbox>> toolbox() {
    const std::lock_guard lock(mutex);
    if (tools) return tools;
    auto prepared = Toolbox::prepare(options.path_list, options.agent);
    if (!prepared) return fail(std::move(prepared.error()));
    tools = std::make_shared<const Toolbox>(std::move(*prepared));
    return tools;
  }

  std::shared_ptr<const CgroupTree> cgroups() {
    const std::lock_guard lock(mutex);
    if (!cgroup_tree) cgroup_tree = CgroupTree::open(CgroupPlace::of_this_process(), std::make_shared<CgroupFiles>());
    return cgroup_tree;
  }

  /// All that has to be had from the host before bwrap can start.
  Result<HostResources> claim(const SandboxLimits& limits, const std::string& name) {
    HostResources resources;
    resources.cgroups = cgroups();
    if (auto checked = check_cpus(limits.cpus, *resources.cgroups); !checked) return fail(std::move(checked.error()));
    if (ids) {
      auto id = ids->claim();
      if (!id) return fail(std::move(id.error()));
      resources.id = std::move(*id);
    }
    auto group = resources.cgroups->make(name, {limits.memory_bytes, limits.processes + kOwnProcesses, limits.cpus});
    if (!group) return fail(std::move(group.error()));
    resources.cgroup = std::move(*group);
    return resources;
  }

  Options options;
  const std::string home = environment("HOME");
  const std::optional<HostIds> ids = is_root() ? std::optional(HostIds::of_host()) : std::nullopt;
  std::shared_ptr<Reaper> reaper = std::make_shared<Reaper>();
  std::atomic<uint64_t> opened{0};
  std::mutex mutex;  ///< guards the two below
  std::shared_ptr<const Toolbox> tools;
  std::shared_ptr<const CgroupTree> cgroup_tree;
  std::mutex probe_mutex;  ///< guards the one below, and keeps probes one at a time
  std::optional<Probe> usable;
};

BubblewrapBackend::BubblewrapBackend(Options options) : state_(std::make_unique<State>(std::move(options))) {}

BubblewrapBackend::~BubblewrapBackend() { drain(Deadline::after(10s)); }

Result<std::unique_ptr<Sandbox>> BubblewrapBackend::open(const SandboxSpec& spec, Deadline deadline,
                                                         std::stop_token stop) {
  if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "The sandbox was not started: its caller gave up.");
  if (auto checked = check_settings(spec.config); !checked) return fail(std::move(checked.error()));
  if (auto checked = check_limits(spec.limits); !checked) return fail(std::move(checked.error()));
  auto mounts = runtime_mounts(spec.runtime_paths, state_->home);
  if (!mounts) return fail(std::move(mounts.error()));
  auto toolbox = state_->toolbox();
  if (!toolbox) return fail(std::move(toolbox.error()));

  const std::string number = std::to_string(state_->opened++);
  auto stream = make_stream();
  if (!stream) return fail(std::move(stream.error()));
  auto errors = make_error_pipe();
  if (!errors) return fail(std::move(errors.error()));
  auto resources = state_->claim(spec.limits, number);
  if (!resources) return fail(std::move(resources.error()));

  if (auto given = give_away(spec.mounts, *resources); !given) return fail(std::move(given.error()));

  StartRequest request = request_for(spec, std::move(*mounts), *resources);
  request.input = request.output = stream->theirs.get();
  request.errors = errors->theirs.get();
  auto started = start(**toolbox, request);
  stream->theirs.reset();
  errors->theirs.reset();
  if (started) {
    resources->monitor = std::move(started->monitor);
    resources->lifeline = std::move(started->lifeline);
  }
  // From here on the sandbox's destructor cleans up.
  auto sandbox =
      std::make_unique<BubblewrapSandbox>("bubblewrap-" + std::to_string(getpid()) + "-" + number,
                                          std::move(stream->ours), std::move(*resources), spec.limits, state_->reaper);
  if (!started) return fail(std::move(started.error()));

  auto ready = sandbox->wait_until_ready(deadline, stop);
  if (ready) return std::unique_ptr<Sandbox>(std::move(sandbox));
  if (ready.error().code != ErrorCode::kBackendUnavailable)
    return fail(std::move(ready.error()).within("Start a sandbox"));
  return fail(explain_failure(read_errors(errors->ours.get(), deadline.earlier(Deadline::after(2s))),
                              HostFacts::look((*toolbox)->bwrap)));
}

Result<void> BubblewrapBackend::check(const RuntimeConfig& config) const {
  if (auto checked = check_settings(config); !checked) return checked;
  SandboxLimits limits;
  limits.memory_bytes = config.memory_bytes.value_or(limits.memory_bytes);
  if (auto checked = check_limits(limits); !checked) return checked;
  if (!config.cpus) return {};
  return check_cpus(config.cpus, *state_->cgroups());
}

bool BubblewrapBackend::network_reachable(const RuntimeConfig& config) const { return shares_network(config); }

bool BubblewrapBackend::can_show(const std::string& host_path) const {
  return can_reach(host_path, is_root() ? Viewer::kAnybody : Viewer::kSelf);
}

void BubblewrapBackend::drain(Deadline deadline) { state_->reaper->drain(deadline); }

Probe BubblewrapBackend::probe() {
  const std::lock_guard lock(state_->probe_mutex);
  if (state_->usable) return *state_->usable;
  const auto sandbox = open(SandboxSpec{}, Deadline::after(10s), {});
  if (!sandbox) return {false, sandbox.error().sentence, sandbox.error().hint};
  const auto toolbox = state_->toolbox();
  const std::string as = is_root() ? "each sandbox under a host id of its own" : "under your own user id";
  state_->usable = Probe{true, "bubblewrap " + (*toolbox)->version + " (" + (*toolbox)->bwrap + "), " + as, ""};
  return *state_->usable;
}

std::vector<Capability> BubblewrapBackend::capabilities() {
  using Level = Capability::Level;
  const auto cgroups = state_->cgroups();
  const auto by_cgroup = [&](const char* name, Controller controller, Level otherwise, const std::string& fallback) {
    if (cgroups->holds(controller)) return Capability{name, Level::kSupported, cgroups->version(controller)};
    return Capability{name, otherwise, fallback + "; no control group: " + cgroups->why_not(controller)};
  };
  std::vector<Capability> list;
  list.push_back(by_cgroup(
      "memory limit", Controller::kMemory, Level::kDegraded,
      "approximate only, by RLIMIT_DATA for each process and the agent's watch over their sum and the number of files; "
      "socket buffers and shared memory that was let go of are not counted. It is held when the server is run as root "
      "or with: systemd-run --user --scope -p Delegate=yes llm-sandbox …"));
  list.push_back(
      by_cgroup("process limit", Controller::kPids, Level::kDegraded, "RLIMIT_NPROC in the sandbox's user namespace"));
  list.push_back(by_cgroup("CPU limit", Controller::kCpu, Level::kUnsupported, "SANDBOX_CPUS is refused"));
  list.push_back({"disk limit", Level::kSupported, "one tmpfs for the workspace and /tmp; it counts as memory"});
  list.push_back(
      {"network off", Level::kSupported,
       "a network namespace of its own; SANDBOX_NETWORK_MODE=host opens it, with all services of localhost"});
  list.push_back({"read-only system", Level::kSupported, "always; SANDBOX_READ_ONLY=false changes nothing"});
  if (is_root())
    list.push_back({"separate host id", Level::kSupported, "each sandbox, bwrap included, under an unprivileged id"});
  else
    list.push_back({"separate host id", Level::kDegraded,
                    "programs run under your own user id, kept apart by namespaces; a server run as root gives each "
                    "sandbox an id of its own"});
  list.push_back({"no privileges", Level::kSupported, "no capabilities, no_new_privs, no nested user namespaces"});
  const auto toolbox = state_->toolbox();
  if (toolbox) {
    const auto& unknown = (*toolbox)->unknown_calls;
    list.push_back({"system call filter", Level::kSupported,
                    "seccomp: " + std::to_string((*toolbox)->restricted_calls) + " calls refused or restricted" +
                        (unknown.empty() ? "" : "; unknown to libseccomp and allowed: " + join(unknown, ", "))});
  } else
    list.push_back({"system call filter", Level::kUnsupported, toolbox.error().sentence});
  list.push_back({"ends with the server", Level::kSupported, "the kernel kills every sandbox when the server dies"});
  return list;
}

}  // namespace llm_sandbox
