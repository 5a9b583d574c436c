#pragma once

#include <string>

namespace llm_sandbox::mcp {

enum class Delivery {
  kReliable,    ///< an answer: waits for room rather than be lost
  kExpendable,  ///< progress: dropped when there is no room, never waits
};

/// Where a transport takes the messages that belong to what it delivered. Over stdio there is one; over HTTP each
/// request has its own. Thread-safe, and outlives its transport: what comes after the end is dropped.
class Outbox {
 public:
  virtual ~Outbox() = default;
  /// One JSON text on one line, without the newline.
  virtual void send(std::string message, Delivery delivery) = 0;
};

}  // namespace llm_sandbox::mcp
