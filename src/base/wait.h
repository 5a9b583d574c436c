#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

/// A descriptor that becomes readable once stop is requested, to stand in a poll(2) set beside the one waited for; -1,
/// which poll(2) passes over, where stop can never be requested. Lives on the waiting thread's stack.
/// Throws std::system_error when no descriptor is to be had.
class StopWakeup {
 public:
  explicit StopWakeup(std::stop_token stop);
  int fd() const { return event_.get(); }

 private:
  struct Fire {
    int fd;
    void operator()() const noexcept;
  };
  UniqueFd event_;
  std::optional<std::stop_callback<Fire>> callback_;
};

enum class WaitResult { kReady, kTimeout, kStopped };

/// Waits until `fd` shows one of `events` (poll(2)), the deadline passes or stop is requested, in this order of
/// precedence.
WaitResult wait_for(int fd, short events, Deadline deadline, const StopWakeup& stop);

}  // namespace llm_sandbox
