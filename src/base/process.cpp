#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/wait.h"

namespace llm_sandbox {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const auto& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Attributes and file actions of one posix_spawn, destroyed together.
class SpawnActions {
 public:
  SpawnActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  /// The sources are first lifted above every target, so that no dup2 overwrites one that is still needed.
  Result<void> place(const std::vector<std::pair<int, int>>& descriptors, std::vector<UniqueFd>& lifted) {
    int highest = 2;
    for (const auto& [ours, theirs] : descriptors) highest = std::max(highest, theirs);
    for (int standard = 0; standard <= 2; ++standard) {
      const bool named = std::any_of(descriptors.begin(), descriptors.end(),
                                     [&](const auto& pair) { return pair.second == standard; });
      if (!named)
        posix_spawn_file_actions_addopen(&actions_, standard, "/dev/null", standard == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    for (const auto& [ours, theirs] : descriptors) {
      lifted.emplace_back(fcntl(ours, F_DUPFD_CLOEXEC, highest + 1));
      if (!lifted.back()) return fail_errno("hand a descriptor to a new process", errno);
      if (const int error = posix_spawn_file_actions_adddup2(&actions_, lifted.back().get(), theirs); error != 0)
        return fail_errno("hand a descriptor to a new process", error);
    }
    return {};
  }

  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// Reads what is there; false at end of file.
bool drain(int fd, std::string& into, size_t max_bytes) {
  std::array<char, 16384> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count <= 0) return count < 0 && (errno == EINTR || errno == EAGAIN);
  const size_t room = max_bytes - std::min(max_bytes, into.size());
  into.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
  return true;
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(SIGKILL);
  wait(Deadline::never());
}

void Child::kill(int signal) noexcept {
  if (pidfd_) syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

std::optional<int> Child::wait(Deadline deadline) {
  if (pid_ <= 0) return std::nullopt;
  const StopWakeup no_stop{std::stop_token{}};
  if (wait_for(pidfd_.get(), POLLIN, deadline, no_stop) != WaitResult::kReady) return std::nullopt;
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  pidfd_.reset();
  return status;
}

Result<Child> spawn(const SpawnSpec& spec) {
  SpawnActions actions;
  std::vector<UniqueFd> lifted;
  lifted.reserve(spec.descriptors.size());
  if (auto placed = actions.place(spec.descriptors, lifted); !placed)
    return fail(std::move(placed.error()).within("start " + spec.executable));
  const auto argv = pointers(spec.argv);
  const auto environment = pointers(spec.environment);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, spec.executable.c_str(), actions.actions(), actions.attributes(), argv.data(),
                                environment.data());
  if (error != 0) return fail_errno("start " + spec.executable, error);
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int open_error = errno;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return fail_errno("watch " + spec.executable + " (pidfd_open)", open_error);
  }
  return Child(pid, std::move(pidfd));
}

Result<Capture> run_and_capture(const SpawnSpec& spec, Deadline deadline, std::stop_token stop, size_t max_output) {
  int out_pipe[2];
  int err_pipe[2];
  if (pipe2(out_pipe, O_CLOEXEC) != 0) return fail_errno("pipe", errno);
  UniqueFd out(out_pipe[0]);
  UniqueFd out_write(out_pipe[1]);
  if (pipe2(err_pipe, O_CLOEXEC) != 0) return fail_errno("pipe", errno);
  UniqueFd err(err_pipe[0]);
  UniqueFd err_write(err_pipe[1]);

  SpawnSpec with_pipes = spec;
  with_pipes.descriptors.emplace_back(out_write.get(), 1);
  with_pipes.descriptors.emplace_back(err_write.get(), 2);
  auto child = spawn(with_pipes);
  if (!child) return fail(std::move(child.error()));
  out_write.reset();
  err_write.reset();

  const StopWakeup wakeup(stop);
  Capture capture;
  // Ends with the program itself: what it left running may hold the pipes for ever.
  while (true) {
    pollfd set[4] = {{out ? out.get() : -1, POLLIN, 0},
                     {err ? err.get() : -1, POLLIN, 0},
                     {child->pidfd(), POLLIN, 0},
                     {wakeup.fd(), POLLIN, 0}};
    if (poll(set, 4, deadline.poll_timeout()) < 0 && errno != EINTR) return fail_errno("poll", errno);
    if (set[0].revents != 0 && !drain(out.get(), capture.out, max_output)) out.reset();
    if (set[1].revents != 0 && !drain(err.get(), capture.err, max_output)) err.reset();
    if (set[0].revents == 0 && set[1].revents == 0 && set[2].revents != 0) break;
    if (set[3].revents != 0) return fail(ErrorCode::kCancelled, spec.executable + " was cancelled");
    if (deadline.passed()) return fail(ErrorCode::kTimeout, spec.executable + " did not end in time");
  }
  capture.exit_code = exit_code_of(child->wait(Deadline::never()).value_or(0));
  return capture;
}

std::vector<std::string> find_all_in_path(const std::string& name, const std::string& path_list) {
  std::vector<std::string> found;
  size_t start = 0;
  while (start <= path_list.size()) {
    const size_t end = std::min(path_list.find(':', start), path_list.size());
    const std::string folder = path_list.substr(start, end - start);
    start = end + 1;
    if (folder.empty() || folder[0] != '/') continue;  // a relative PATH entry depends on where we stand
    const std::string candidate = folder + "/" + name;
    struct stat info {};
    if (stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(candidate.c_str(), X_OK) == 0)
      found.push_back(candidate);
  }
  return found;
}

std::string find_in_path(const std::string& name, const std::string& path_list) {
  const auto found = find_all_in_path(name, path_list);
  return found.empty() ? std::string() : found.front();
}

}  // namespace llm_sandbox
