// llm-sandbox-agent: the program inside every sandbox. Speaks the frames of frame.h on descriptors 0 and 1.

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "sandbox/agent/agent.h"

namespace {

using llm_sandbox::UniqueFd;

[[noreturn]] void give_up(const char* what) {
  const std::string words = std::string("llm-sandbox-agent: ") + what + ": " + strerrordesc_np(errno) + "\n";
  if (write(STDERR_FILENO, words.data(), words.size()) < 0) _exit(2);
  _exit(1);
}

/// What the agent must not pass on, whoever started it.
void close_inherited() {
  if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
  for (int fd = 3; fd < static_cast<int>(sysconf(_SC_OPEN_MAX)); ++fd) close(fd);  // kernels before 5.9
}

UniqueFd move_away(int standard) {
  UniqueFd moved(fcntl(standard, F_DUPFD_CLOEXEC, 3));
  if (!moved) give_up("take over the stream to the server");
  const int flags = fcntl(moved.get(), F_GETFL);
  if (flags < 0 || fcntl(moved.get(), F_SETFL, flags | O_NONBLOCK) != 0) give_up("make the stream non-blocking");
  return moved;
}

void occupy_standard_descriptors() {
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null || dup2(null.get(), 0) < 0 || dup2(null.get(), 1) < 0) give_up("open /dev/null");
  if (null.get() == 2) null.release();  // we were started without a descriptor 2
}

/// Nothing interrupts the agent: all signals are blocked (SIGPIPE, too), and programs start with none ignored.
UniqueFd take_signals() {
  // Asked of the kernel itself: the C library keeps two signals for itself, and posix_spawn leaves these ignored.
  const std::array<unsigned long, 4> defaults{};  // struct sigaction as the kernel has it
  for (int number = 1; number < NSIG; ++number) syscall(SYS_rt_sigaction, number, defaults.data(), nullptr, NSIG / 8);
  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  UniqueFd child_signals(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!child_signals) give_up("watch for the end of children");
  return child_signals;
}

}  // namespace

int main() {
  close_inherited();
  UniqueFd in = move_away(STDIN_FILENO);
  UniqueFd out = move_away(STDOUT_FILENO);
  occupy_standard_descriptors();
  umask(022);
  // Programs of the same user may neither read the agent's memory nor take its descriptors.
  if (prctl(PR_SET_DUMPABLE, 0) != 0) give_up("become undumpable");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) give_up("become the parent of orphans");
  llm_sandbox::agent::Agent agent(std::move(in), std::move(out), take_signals());
  agent.run();
  _exit(0);
}
