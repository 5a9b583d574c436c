#include "backends/bubblewrap/start.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "backends/bubblewrap/failures.h"
#include "backends/bubblewrap/host_files.h"
#include "backends/bubblewrap/seccomp.h"
#include "base/text.h"

namespace llm_sandbox {

namespace embedded {
std::string_view launcher();
}

namespace {

using namespace std::chrono_literals;

constexpr int kLauncherDescriptor = 3;  // launcher.cpp relies on it
constexpr size_t kMaxCachedFiles = 64;

/// Descriptors for the new process, numbered from 3 in the order in which they are added.
class Descriptors {
 public:
  explicit Descriptors(SpawnSpec& spec) : spec_(spec) {}
  int add(int ours) {
    spec_.descriptors.emplace_back(ours, next_);
    return next_++;
  }
  int add(UniqueFd ours) {
    kept_.push_back(std::move(ours));
    return add(kept_.back().get());
  }
  int last() const { return next_ - 1; }

 private:
  SpawnSpec& spec_;
  std::vector<UniqueFd> kept_;
  int next_ = kLauncherDescriptor;
};

Result<void> add_file(const Toolbox& toolbox, const SandboxFile& file, Descriptors& descriptors, BwrapPlan& plan) {
  const auto memory = toolbox.files->get(file.content);
  if (!memory) return fail(Error(memory.error()));
  auto reader = (*memory)->reopen();
  if (!reader) return fail(std::move(reader.error()));
  plan.files.push_back({file.path, descriptors.add(std::move(*reader))});
  return {};
}

Result<void> add_files(const Toolbox& toolbox, const StartRequest& request, Descriptors& descriptors, BwrapPlan& plan) {
  for (const auto& [path, content] : synthetic_files())
    if (auto added = add_file(toolbox, {path, content}, descriptors, plan); !added) return added;
  for (const auto& file : toolbox.layout.etc_files)
    if (auto added = add_file(toolbox, file, descriptors, plan); !added) return added;
  if (auto added = add_file(toolbox, toolbox.agent, descriptors, plan); !added) return added;
  if (request.files == nullptr) return {};
  for (const auto& file : *request.files)
    if (auto added = add_file(toolbox, file, descriptors, plan); !added) return added;
  return {};
}

std::vector<std::string> launcher_arguments(const StartRequest& request, int last_descriptor, int lifeline,
                                            const std::string& bwrap) {
  std::vector<std::string> argv{"llm-sandbox-launcher"};
  for (const auto& file : request.join_files) argv.insert(argv.end(), {"--join", file});
  if (request.host_id) argv.insert(argv.end(), {"--id", std::to_string(*request.host_id)});
  argv.insert(argv.end(), {"--last-descriptor", std::to_string(last_descriptor)});
  argv.insert(argv.end(), {"--lifeline", std::to_string(lifeline), "--", bwrap});
  return argv;
}

}  // namespace

Result<std::shared_ptr<const MemoryFile>> MemoryFileCache::get(const std::string& content) {
  const std::lock_guard lock(mutex_);
  if (const auto found = files_.find(content); found != files_.end()) return found->second;
  auto made = MemoryFile::make("llm-sandbox-file", content);
  if (!made) return fail(std::move(made.error()));
  if (files_.size() >= kMaxCachedFiles) files_.clear();
  return files_.emplace(content, std::make_shared<const MemoryFile>(std::move(*made))).first->second;
}

Result<Toolbox> Toolbox::prepare(const std::string& path_list, std::string_view agent) {
  auto bwrap = find_bwrap(path_list);
  if (!bwrap) return fail(std::move(bwrap.error()));
  const auto said = run_and_capture({*bwrap, {"bwrap", "--version"}, {"LC_ALL=C"}, {}}, Deadline::after(5s));
  if (!said) return fail(ErrorCode::kBackendUnavailable, *bwrap + " cannot be run: " + said.error().sentence + ".");
  auto version = accept_version(said->out, *bwrap);
  if (!version) return fail(std::move(version.error()));
  auto filter = build_seccomp_filter(default_seccomp_list(), MemoryGuard::kControlGroup);
  if (!filter) return fail(std::move(filter.error()));
  auto seccomp = MemoryFile::make("llm-sandbox-seccomp", filter->program);
  if (!seccomp) return fail(std::move(seccomp.error()));
  const auto stricter = build_seccomp_filter(default_seccomp_list(), MemoryGuard::kWatch);
  if (!stricter) return fail(Error(stricter.error()));
  auto seccomp_with_watch = MemoryFile::make("llm-sandbox-seccomp", stricter->program);
  if (!seccomp_with_watch) return fail(std::move(seccomp_with_watch.error()));
  auto launcher = MemoryFile::make("llm-sandbox-launcher", embedded::launcher());
  if (!launcher) return fail(std::move(launcher.error()));
  return Toolbox{std::move(*bwrap),
                 std::move(*version),
                 HostLayout::look(),
                 std::move(*launcher),
                 std::move(*seccomp),
                 std::move(*seccomp_with_watch),
                 filter->system_calls,
                 std::move(filter->unknown_names),
                 {std::string(kAgentPath), std::string(agent)}};
}

Result<Started> start(const Toolbox& toolbox, const StartRequest& request) {
  int lifeline_pipe[2];
  if (pipe2(lifeline_pipe, O_CLOEXEC) != 0) return fail_errno("pipe", errno);
  const UniqueFd watched(lifeline_pipe[0]);
  UniqueFd lifeline(lifeline_pipe[1]);
  auto seccomp = (request.memory_is_held ? toolbox.seccomp : toolbox.seccomp_with_watch).reopen();
  if (!seccomp) return fail(std::move(seccomp.error()));

  SpawnSpec spec;
  spec.descriptors = {{request.input, 0}, {request.output, 1}, {request.errors, 2}};
  Descriptors descriptors(spec);
  descriptors.add(toolbox.launcher.fd());

  BwrapPlan plan;
  plan.layout = toolbox.layout;
  plan.runtime_mounts = request.runtime_mounts;
  plan.mounts = request.mounts;
  plan.disk_bytes = request.disk_bytes;
  plan.share_network = request.share_network;
  plan.program = request.program;
  plan.seccomp_descriptor = descriptors.add(std::move(*seccomp));
  if (auto added = add_files(toolbox, request, descriptors, plan); !added) return fail(std::move(added.error()));

  spec.executable = "/proc/self/fd/" + std::to_string(kLauncherDescriptor);
  const int lifeline_descriptor = descriptors.add(watched.get());
  spec.argv = launcher_arguments(request, descriptors.last(), lifeline_descriptor, toolbox.bwrap);
  // The launcher's last argument of its own is the program to start, which gets bwrap's argv behind its name.
  const auto bwrap_argv = bwrap_arguments(plan);
  spec.argv.insert(spec.argv.end(), bwrap_argv.begin() + 1, bwrap_argv.end());
  spec.environment = {"LC_ALL=C"};
  auto monitor = spawn(spec);
  if (!monitor) return fail(std::move(monitor.error()));
  return Started{std::move(*monitor), std::move(lifeline)};
}

}  // namespace llm_sandbox
