#pragma once

#include <string>
#include <string_view>

#include "sandbox/agent/frame.h"
#include "sandbox/agent/messages.h"

namespace llm_sandbox::agent {

/// The frames on their way to the server. Bounded by the good manners of its users: bulk data (output, files, lists)
/// waits for has_room(), and nothing more is asked of the agent while it is overfull().
class Outbox {
 public:
  void push(FrameType type, uint32_t id, std::string_view payload = {});
  template <typename Message>
  void push_message(FrameType type, uint32_t id, const Message& message) {
    push(type, id, encode(message));
  }
  void push_error(uint32_t id, ErrorMessage error);

  bool empty() const { return start_ == queue_.size(); }
  bool has_room() const { return pending() < kRoomBytes; }
  bool overfull() const { return pending() >= kOverfullBytes; }

  /// Writes as much as a non-blocking descriptor takes; false when nobody is left to read it.
  bool flush(int fd);

 private:
  static constexpr size_t kRoomBytes = size_t{256} << 10;
  static constexpr size_t kOverfullBytes = size_t{4} << 20;

  size_t pending() const { return queue_.size() - start_; }

  std::string queue_;
  size_t start_ = 0;
};

}  // namespace llm_sandbox::agent
