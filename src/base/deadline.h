#pragma once

#include <chrono>

namespace llm_sandbox {

/// A point in monotonic time after which a wait gives up. Values, compared and passed by copy.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline after(Clock::duration duration) { return Deadline(Clock::now() + duration); }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  bool passed() const { return !is_never() && Clock::now() >= when_; }
  Deadline earlier(Deadline other) const { return when_ < other.when_ ? *this : other; }
  Clock::time_point time_point() const { return when_; }

  /// Milliseconds left for poll(2): -1 for never, 0 when passed, rounded up otherwise.
  int poll_timeout() const {
    if (is_never()) return -1;
    const auto left = when_ - Clock::now();
    if (left <= Clock::duration::zero()) return 0;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return ms > 0x7fffffff ? 0x7fffffff : static_cast<int>(ms);
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace llm_sandbox
