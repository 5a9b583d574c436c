#include "base/wait.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

namespace llm_sandbox {

void StopWakeup::Fire::operator()() const noexcept {
  const eventfd_t one = 1;
  eventfd_write(fd, one);
}

StopWakeup::StopWakeup(std::stop_token stop) {
  if (!stop.stop_possible()) return;
  event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) throw std::system_error(errno, std::generic_category(), "eventfd");
  callback_.emplace(std::move(stop), Fire{event_.get()});
}

WaitResult wait_for(int fd, short events, Deadline deadline, const StopWakeup& stop) {
  while (true) {
    pollfd set[2] = {{fd, events, 0}, {stop.fd(), POLLIN, 0}};
    const int count = poll(set, 2, deadline.poll_timeout());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return WaitResult::kReady;  // the caller's own read or write names the error
    if (set[0].revents != 0) return WaitResult::kReady;
    if (set[1].revents != 0) return WaitResult::kStopped;
    if (deadline.passed()) return WaitResult::kTimeout;
  }
}

}  // namespace llm_sandbox
