#include "sandbox/agent/outbox.h"

#include <unistd.h>

#include <cerrno>

namespace llm_sandbox::agent {
namespace {

constexpr size_t kLongestText = 4096;  ///< of an error, which may quote a path of any length

}  // namespace

void Outbox::push(FrameType type, uint32_t id, std::string_view payload) { append_frame(queue_, type, id, payload); }

void Outbox::push_error(uint32_t id, ErrorMessage error) {
  if (error.what.size() > kLongestText) error.what.resize(kLongestText);
  push_message(FrameType::kError, id, error);
}

bool Outbox::flush(int fd) {
  while (!empty()) {
    const ssize_t count = write(fd, queue_.data() + start_, pending());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) return false;
    if (count < 0) break;
    start_ += static_cast<size_t>(count);
  }
  // As in FrameParser::feed: what is moved to the front is never more than what has gone out.
  if (start_ >= pending()) {
    queue_.erase(0, start_);
    start_ = 0;
  }
  return true;
}

}  // namespace llm_sandbox::agent
