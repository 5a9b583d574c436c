// llm-sandbox-relay SOCKET PORT PROGRAM ARGUMENT...: the sandbox's end of an EgressProxy (relay.h). Runs a program that
// finds an HTTP proxy on 127.0.0.1:PORT, while each connection to it is forwarded to a UNIX socket.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/unique_fd.h"
#include "sandbox/egress/relay/forwarder.h"

namespace {

using llm_sandbox::UniqueFd;
using llm_sandbox::egress::Forwarder;

constexpr int kRelayFailed = 125;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

[[noreturn]] void give_up(int status, const char* what, const char* on, int error_number) {
  dprintf(STDERR_FILENO, "llm-sandbox-relay: %s %s: %s\n", what, on, strerrordesc_np(error_number));
  _exit(status);
}

sockaddr_un proxy_address(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path);
  if (length >= sizeof address.sun_path) give_up(kRelayFailed, "Cannot use the socket", path, ENAMETOOLONG);
  memcpy(address.sun_path, path, length);
  return address;
}

uint16_t port_number(const char* text) {
  uint16_t port = 0;
  const char* const text_end = text + strlen(text);
  const auto [end, error] = std::from_chars(text, text_end, port);
  if (error != std::errc() || end != text_end || port == 0) give_up(kRelayFailed, "Cannot use the port", text, EINVAL);
  return port;
}

UniqueFd listen_on(const char* port_text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_number(port_text));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (!listener || setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0)
    give_up(kRelayFailed, "Cannot listen on port", port_text, errno);
  return listener;
}

UniqueFd watch_children() {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, nullptr);
  UniqueFd signals(signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) give_up(kRelayFailed, "Cannot watch for the end of", "the program", errno);
  return signals;
}

/// The program gets the signals as we got them.
pid_t start(char** program, const sigset_t& signal_mask) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &signal_mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error_number = posix_spawnp(&pid, program[0], nullptr, &attributes, program, environ);
  if (error_number == ENOENT) give_up(kNotFound, "There is no program", program[0], error_number);
  if (error_number != 0) give_up(kCannotRun, "Cannot start", program[0], error_number);
  posix_spawnattr_destroy(&attributes);
  return pid;
}

/// Leaves with the program's status once it has ended. Children that are not ours may end as well (we may be PID 1).
void leave_with(pid_t program) {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    if (pid == program) _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) give_up(kRelayFailed, "Usage:", "llm-sandbox-relay SOCKET PORT PROGRAM ARGUMENT...", EINVAL);
  Forwarder forwarder(proxy_address(arguments[1]), listen_on(arguments[2]));
  sigset_t signal_mask;
  sigprocmask(SIG_SETMASK, nullptr, &signal_mask);
  const UniqueFd signals = watch_children();
  const pid_t program = start(arguments + 3, signal_mask);
  while (true) {
    if (!forwarder.wait(signals.get())) continue;
    signalfd_siginfo ignored;
    while (read(signals.get(), &ignored, sizeof ignored) > 0) continue;
    leave_with(program);
  }
}
