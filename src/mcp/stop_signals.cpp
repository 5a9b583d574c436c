#include "mcp/stop_signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

namespace llm_sandbox::mcp {

Result<UniqueFd> open_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr)) return fail_errno("block signals", error);
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno("signalfd", errno);
  return fd;
}

}  // namespace llm_sandbox::mcp
