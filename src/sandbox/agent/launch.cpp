#include "sandbox/agent/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace llm_sandbox::agent {
namespace {

constexpr int kPipeBytes = 1 << 20;
constexpr uint64_t kLeastStackBytes = 1 << 20;

/// All that the child needs, made ready before it is born: it shares our memory until execve and may not allocate.
struct ChildPlan {
  const std::vector<char*>* candidates = nullptr;  ///< executables to try, in order; ends with null
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  int folder = -1;
  int out = -1;
  int err = -1;
  const ExecMessage* limits = nullptr;

  int error_number = 0;  ///< what the child failed at, read by the parent
  const char* failed_at = nullptr;
};

bool lower_limit(__rlimit_resource resource, uint64_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return false;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value);
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(resource, &limit) == 0;
}

/// A thread's stack, as large as this limit, counts as memory (RLIMIT_DATA) from the start: with the usual 8 MiB, half
/// of the threads that are allowed would not fit. Only the soft limit: a program that needs more may take it.
bool fit_thread_stacks(const ExecMessage& limits) {
  if (limits.memory_bytes == 0 || limits.processes == 0) return true;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0) return false;
  const uint64_t fitting = std::max(kLeastStackBytes, limits.memory_bytes / 2 / limits.processes);
  stack.rlim_cur = std::min<rlim_t>(stack.rlim_cur, fitting);
  return setrlimit(RLIMIT_STACK, &stack) == 0;
}

/// Cores: 1 and not 0, which would let the kernel feed a core_pattern that is a pipe on the host (coredump.c); a file
/// that small it never begins.
bool lower_limits(const ExecMessage& limits) {
  return lower_limit(RLIMIT_CORE, 1) && (limits.file_bytes == 0 || lower_limit(RLIMIT_FSIZE, limits.file_bytes)) &&
         (limits.open_files == 0 || lower_limit(RLIMIT_NOFILE, limits.open_files)) &&
         (limits.processes == 0 || lower_limit(RLIMIT_NPROC, limits.processes)) &&
         (limits.memory_bytes == 0 || lower_limit(RLIMIT_DATA, limits.memory_bytes)) && fit_thread_stacks(limits);
}

/// Tries each candidate as execvp(3) does, without its fallback to a shell. Comes back only with an errno.
int execute(const ChildPlan& plan) {
  int error_number = ENOENT;
  for (char* const executable : *plan.candidates) {
    if (executable == nullptr) break;
    execve(executable, plan.argv, plan.environment);
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
    if (errno == EACCES) error_number = EACCES;
  }
  return error_number;
}

/// Makes the kernel, should memory run out, take the program and not the agent; where that is not allowed, nothing is
/// lost but this preference. The files of /proc/self are closed to an undumpable process, and whether it is one is a
/// property of the memory that agent and child share: both are dumpable for this moment, in which no program lives.
void prefer_as_oom_victim() {
  prctl(PR_SET_DUMPABLE, 1);
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  const ssize_t written = file < 0 ? -1 : write(file, "1000", 4);
  static_cast<void>(written);
  prctl(PR_SET_DUMPABLE, 0);
}

/// Runs in the child, in our memory, while we stand still: system calls only.
int child_main(void* argument) {
  auto& plan = *static_cast<ChildPlan*>(argument);
  const auto give_up = [&](const char* what, int error_number) {
    plan.failed_at = what;
    plan.error_number = error_number;
    _exit(127);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the agent be killed where it is no PID 1
  setsid();
  prefer_as_oom_victim();
  // The agent keeps 0, 1 and 2 occupied, so none of these is what it replaces.
  if (dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0) != 0) give_up("open /dev/null", errno);
  if (dup2(plan.out, 1) != 1 || dup2(plan.err, 2) != 2) give_up("place its output", errno);
  if (fchdir(plan.folder) != 0) give_up("enter its folder", errno);
  if (!lower_limits(*plan.limits)) give_up("set its limits", errno);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  give_up("execute it", execute(plan));
  return 127;
}

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const auto& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Where a program of this name may be: in the folders of the PATH that it is to get itself.
std::vector<std::string> candidates_for(const std::string& name, const std::vector<std::string>& environment) {
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> candidates;
  for (const auto& variable : environment) {
    if (!variable.starts_with("PATH=")) continue;
    std::string_view rest = std::string_view(variable).substr(5);
    while (true) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) candidates.push_back(std::string(rest.substr(0, end)) + "/" + name);
      if (end == rest.size()) return candidates;
      rest.remove_prefix(end + 1);
    }
  }
  return candidates;
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Outcome<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return refuse(errno, "make a pipe");
  Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // only for speed; a user may have used up what he may have of it
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return made;
}

}  // namespace

Outcome<Launched> launch(const ExecMessage& message) {
  if (message.argv.empty() || message.argv[0].empty()) return refuse(EINVAL, "start a program without a name");
  if (std::any_of(message.argv.begin(), message.argv.end(), has_nul) ||
      std::any_of(message.environment.begin(), message.environment.end(), has_nul) || has_nul(message.folder))
    return refuse(EINVAL, "start a program with a zero byte in its arguments, environment or folder");

  const std::string what = "start " + message.argv[0];
  Launched launched;
  launched.folder.reset(open(message.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!launched.folder) return refuse(errno, what + ": open its folder " + message.folder);
  auto out = make_pipe();
  auto err = make_pipe();
  if (!out) return refuse(static_cast<int>(out.error().error_number), what + ": " + out.error().what);
  if (!err) return refuse(static_cast<int>(err.error().error_number), what + ": " + err.error().what);

  const auto candidate_names = candidates_for(message.argv[0], message.environment);
  const auto candidates = pointers(candidate_names);
  const auto argv = pointers(message.argv);
  const auto environment = pointers(message.environment);
  ChildPlan plan{&candidates,          argv.data(), environment.data(), launched.folder.get(), out->write_end.get(),
                 err->write_end.get(), &message};

  // Its stack only: the rest of our memory is lent to it (CLONE_VM), and we sleep until it is done with it.
  alignas(16) static std::array<char, 65536> stack;
  launched.pid = clone(child_main, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  if (launched.pid < 0) return refuse(errno, what + ": make a process");
  if (plan.error_number != 0) {
    waitpid(launched.pid, nullptr, 0);
    return refuse(plan.error_number, what + ": " + plan.failed_at);
  }
  launched.out = std::move(out->read_end);
  launched.err = std::move(err->read_end);
  return launched;
}

}  // namespace llm_sandbox::agent
