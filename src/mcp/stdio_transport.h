#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/deadline.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "mcp/connection.h"

namespace llm_sandbox::mcp {

/// The private descriptors that the protocol stands on.
struct StdioStreams {
  UniqueFd in;
  UniqueFd out;
};

/// Moves the protocol from 0 and 1 to high close-on-exec descriptors, and puts /dev/null on 0 and stderr on 1, so that
/// no library or child can read or write a message. kIo.
Result<StdioStreams> take_standard_streams();

struct StdioLimits {
  size_t line_bytes = size_t{64} << 20;   ///< a longer line is discarded
  size_t queued_bytes = size_t{8} << 20;  ///< of messages that the client has not read yet
  std::chrono::milliseconds grace{500};   ///< for calls in flight after the end of input
};

/// What a transport tells of what it reads. Called on the thread of StdioTransport::run(); must not wait.
struct StdioEvents {
  std::function<void(std::string_view line)> on_line;  ///< without the newline; never empty
  std::function<void()> on_overlong_line;              ///< after its newline, or the end of input, was seen
  std::function<bool()> is_idle;                       ///< whether all requests have been answered
};

/// MCP over a pair of descriptors: one JSON text a line (transports, "stdio"). One thread reads, one writes.
/// The reading thread never waits for the client to read: while more than `queued_bytes` are waiting it takes no more
/// lines, so that a client that does not read costs a bounded amount of memory and stops no end.
class StdioTransport {
 public:
  enum class Ended { kEndOfInput, kStopped, kPeerGone };

  StdioTransport(UniqueFd in, UniqueFd out, StdioLimits limits = {});
  /// Drops what is still to be written.
  ~StdioTransport();
  StdioTransport(const StdioTransport&) = delete;
  StdioTransport& operator=(const StdioTransport&) = delete;

  std::shared_ptr<Outbox> outbox() const;

  /// Reads until the end of input (then calls in flight have `grace` to be answered), until `stop_fd` becomes readable,
  /// or until nobody reads the output any more. The messages of the other threads are dropped afterwards.
  Ended run(const StdioEvents& events, int stop_fd);
  /// Makes run() ask is_idle() again. From any thread.
  void wake();

 private:
  class Queue;
  class LineSplitter;
  class Reader;
  static void write_queue(int out, Queue& queue);
  void close() noexcept;

  const UniqueFd in_;
  const UniqueFd out_;
  const StdioLimits limits_;
  const std::shared_ptr<Queue> queue_;
  std::thread writer_;
};

}  // namespace llm_sandbox::mcp
