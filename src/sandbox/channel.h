#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "sandbox/agent/frame.h"

namespace llm_sandbox {

/// The server's end of the stream to an agent: whole frames in and out, each wait bounded.
/// Takes nothing on trust: the other side may be hostile. One thread at a time.
class Channel {
 public:
  /// `stream` is a connected duplex descriptor (socket); the channel makes it non-blocking.
  explicit Channel(UniqueFd stream);

  /// Writes one frame. An agent that does not read makes this end with kTimeout at the deadline. A payload that no
  /// frame of this type can hold is kTooLarge; after any other error the channel is closed.
  Result<void> send(FrameType type, uint32_t id, std::string_view payload, Deadline deadline,
                    const std::stop_token& stop);

  /// Waits for the next frame; one that is already there is returned whatever the deadline. kTimeout, kCancelled,
  /// kProtocol (bad frame), kBackendUnavailable (the stream ended).
  Result<Frame> receive(Deadline deadline, const std::stop_token& stop);

  /// Ends the stream; the agent then kills what runs and exits. May be called twice; later calls of send and receive
  /// fail.
  void close() noexcept;

 private:
  Result<void> send_all(std::string_view bytes, Deadline deadline, const std::stop_token& stop);

  UniqueFd stream_;
  FrameParser parser_;
};

}  // namespace llm_sandbox
