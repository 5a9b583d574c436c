#include "sandbox/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/wait.h"

namespace llm_sandbox {
namespace {

constexpr size_t kReceiveBytes = kMaxDataBytes + kFrameHeaderBytes;

tl::unexpected<Error> stream_ended() {
  return fail(ErrorCode::kBackendUnavailable, "the agent in the sandbox has ended its stream");
}

tl::unexpected<Error> cancelled() { return fail(ErrorCode::kCancelled, "cancelled while waiting for the sandbox"); }

tl::unexpected<Error> timed_out() {
  return fail(ErrorCode::kTimeout, "the agent in the sandbox did not answer in time");
}

/// Waits until the stream can go on; only called when it cannot.
Result<void> wait_until(int fd, short events, Deadline deadline, const std::stop_token& stop) {
  const StopWakeup wakeup(stop);
  switch (wait_for(fd, events, deadline, wakeup)) {
    case WaitResult::kReady:
      return {};
    case WaitResult::kStopped:
      return cancelled();
    case WaitResult::kTimeout:
      break;
  }
  return timed_out();
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Channel::Channel(UniqueFd stream) : stream_(std::move(stream)) {
  const int flags = fcntl(stream_.get(), F_GETFL);
  if (flags >= 0) fcntl(stream_.get(), F_SETFL, flags | O_NONBLOCK);
}

Result<void> Channel::send(FrameType type, uint32_t id, std::string_view payload, Deadline deadline,
                           const std::stop_token& stop) {
  if (payload.size() > max_payload_bytes(type))
    return fail(ErrorCode::kTooLarge, "a message of " + std::to_string(payload.size()) +
                                          " bytes is more than the sandbox takes at once (" +
                                          std::to_string(max_payload_bytes(type)) + ")");
  std::string bytes;
  bytes.reserve(kFrameHeaderBytes + payload.size());
  append_frame(bytes, type, id, payload);
  auto sent = send_all(bytes, deadline, stop);
  if (!sent) close();  // a part of the frame may be on its way
  return sent;
}

Result<void> Channel::send_all(std::string_view bytes, Deadline deadline, const std::stop_token& stop) {
  if (!stream_) return fail(ErrorCode::kBackendUnavailable, "the stream to the sandbox is closed");
  while (!bytes.empty()) {
    const ssize_t count = ::send(stream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (!would_block()) return stream_ended();
    if (auto ready = wait_until(stream_.get(), POLLOUT, deadline, stop); !ready) return ready;
  }
  return {};
}

Result<Frame> Channel::receive(Deadline deadline, const std::stop_token& stop) {
  if (!stream_) return fail(ErrorCode::kBackendUnavailable, "the stream to the sandbox is closed");
  std::unique_ptr<char[]> buffer;  // made only when the parser has nothing left
  bool caught_up = false;          // with what the agent has sent so far
  while (true) {
    auto frame = parser_.next();
    if (!frame) return fail(std::move(frame.error()));
    if (*frame) return std::move(**frame);
    // A frame that comes in drops may outlive neither.
    if (caught_up && stop.stop_requested()) return cancelled();
    if (caught_up && deadline.passed()) return timed_out();

    if (!buffer) buffer = std::make_unique_for_overwrite<char[]>(kReceiveBytes);
    const ssize_t count = recv(stream_.get(), buffer.get(), kReceiveBytes, 0);
    caught_up = count < static_cast<ssize_t>(kReceiveBytes);
    if (count > 0) {
      parser_.feed({buffer.get(), static_cast<size_t>(count)});
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || !would_block()) return stream_ended();
    if (auto ready = wait_until(stream_.get(), POLLIN, deadline, stop); !ready) return fail(std::move(ready.error()));
  }
}

void Channel::close() noexcept { stream_.reset(); }

}  // namespace llm_sandbox
