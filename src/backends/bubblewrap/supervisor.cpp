#include "backends/bubblewrap/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace llm_sandbox {
namespace {

constexpr int kSetupFailed = 125;
constexpr int kLookAgainMs = 20;  ///< for processes that were born or handed to us meanwhile

[[noreturn]] void give_up(const char* what, const char* on) {
  dprintf(STDERR_FILENO, "%s %s: %s\n", what, on, strerror(errno));
  _exit(kSetupFailed);
}

struct Process {
  pid_t pid;
  pid_t parent;
};

/// The parent of a process by /proc/PID/stat; 0 when it is gone or hidden.
pid_t parent_of(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  const ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  if (count <= 0) return 0;
  text[count] = '\0';
  // The program's name, second field, may hold anything but ends at the last ")".
  const char* const name_end = strrchr(text, ')');
  int parent = 0;
  if (name_end == nullptr || sscanf(name_end + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

std::vector<Process> all_processes() {
  std::vector<Process> found;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* const entry = readdir(folder)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid > 0) found.push_back({pid, parent_of(pid)});
  }
  closedir(folder);
  return found;
}

/// Through a pidfd, and only if the parent is still the one seen: a pid may have been given to a stranger meanwhile.
void kill_child_of(const Process& process) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (pidfd < 0) return;
  if (parent_of(process.pid) == process.parent) syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  close(pidfd);
}

/// Orphans become our children (PR_SET_CHILD_SUBREAPER) or those of the PID namespace's first process: always below us.
void kill_descendants() {
  const std::vector<Process> processes = all_processes();
  std::vector<pid_t> ours{getpid()};
  for (size_t next = 0; next < ours.size(); ++next) {
    for (const Process& process : processes) {
      if (process.parent != ours[next]) continue;
      ours.push_back(process.pid);
      kill_child_of(process);
    }
  }
}

/// The program and whatever else has become our child.
class Children {
 public:
  explicit Children(pid_t program) : program_(program) {}

  /// Reaps what has ended; false once none is left.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0 && errno != EINTR) return false;
      if (pid != program_) continue;
      status_ = status;
      program_ = -1;
    }
  }
  bool program_ended() const { return program_ < 0; }
  void kill_program() const {
    if (!program_ended()) kill(program_, SIGKILL);
  }
  int exit_code() const { return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_); }

 private:
  pid_t program_;
  int status_ = 0;
};

/// What the program was given must be its alone: the server learns of its end by the end of its streams.
int keep_only(int lifeline, int signals) {
  const int low = std::min(lifeline, signals);
  const int high = std::max(lifeline, signals);
  if (low > 0) syscall(SYS_close_range, 0, low - 1, 0);
  if (high > low + 1) syscall(SYS_close_range, low + 1, high - 1, 0);
  return static_cast<int>(syscall(SYS_close_range, high + 1, ~0U, 0));
}

/// Waits until a child has ended or, while `lifeline` is not -1, that has; true for the latter.
bool wait_for_end(int signals, int lifeline, int timeout_ms) {
  pollfd events[2] = {{signals, POLLIN, 0}, {lifeline, 0, 0}};
  poll(events, 2, timeout_ms);
  signalfd_siginfo ignored;
  while (read(signals, &ignored, sizeof ignored) > 0) continue;
  return events[1].revents != 0;
}

}  // namespace

void supervise(char** program, int lifeline) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) give_up("Cannot look after", program[0]);
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, nullptr);
  const int signals = signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) give_up("Cannot watch", program[0]);

  const pid_t pid = fork();
  if (pid < 0) give_up("Cannot start", program[0]);
  if (pid == 0) {
    sigprocmask(SIG_UNBLOCK, &child_ended, nullptr);
    close(lifeline);
    execv(program[0], program);
    give_up("Cannot start", program[0]);
  }
  keep_only(lifeline, signals);

  Children children(pid);
  bool cut = false;
  bool waited = false;
  while (children.reap()) {
    const bool ending = cut || children.program_ended();
    if (cut) children.kill_program();
    // The kernel takes most of them along with bwrap; only what it leaves is worth a look at all processes.
    if (children.program_ended() || waited) kill_descendants();
    waited = cut;
    if (wait_for_end(signals, cut ? -1 : lifeline, ending ? kLookAgainMs : -1)) cut = true;
  }
  _exit(children.exit_code());
}

}  // namespace llm_sandbox
