#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "mcp/client_session.h"
#include "mcp/connection.h"

namespace llm_sandbox::mcp {

/// At most ten progress notifications a second for one call; what comes faster is left out, the newest wins.
constexpr std::chrono::milliseconds kProgressInterval{100};
constexpr size_t kMaxProgressMessage = 200;  ///< bytes

class ProgressPacer;

/// Tells the client how one call is going. Thread-safe.
class ProgressReporter : public std::enable_shared_from_this<ProgressReporter> {
 public:
  /// `token` is JSON. The pacer must outlive the reporter's use.
  ProgressReporter(std::shared_ptr<Call> call, std::shared_ptr<Outbox> outbox, std::string token, Revision revision,
                   ProgressPacer& pacer);

  /// Sends now, or as soon as the interval allows, unless something newer comes first. Any bytes; sent as one line of
  /// at most kMaxProgressMessage bytes.
  void report(std::string_view message);

 private:
  friend class ProgressPacer;
  using Clock = std::chrono::steady_clock;

  void flush();
  void send(std::string_view message);

  const std::shared_ptr<Call> call_;
  const std::shared_ptr<Outbox> outbox_;
  const std::string token_;
  const Revision revision_;
  ProgressPacer& pacer_;
  std::mutex mutex_;  ///< guards the three below
  std::optional<std::string> waiting_;
  Clock::time_point next_allowed_{};
  int64_t value_ = 0;
};

/// Sends the last message of a burst when its time has come. Its thread starts with the first burst.
class ProgressPacer {
 public:
  ProgressPacer() = default;
  ~ProgressPacer();
  ProgressPacer(const ProgressPacer&) = delete;
  ProgressPacer& operator=(const ProgressPacer&) = delete;

 private:
  friend class ProgressReporter;
  using Clock = std::chrono::steady_clock;

  void flush_at(Clock::time_point when, std::weak_ptr<ProgressReporter> reporter);
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<Clock::time_point, std::weak_ptr<ProgressReporter>>> due_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace llm_sandbox::mcp
