#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace llm_sandbox {

/// The unit of the stream between server and agent.
///
/// Wire form, little endian: u32 payload length, u16 type, u16 zero, u32 request id, then the payload. Control frames
/// carry one CBOR map (RFC 8949) of at most kMaxControlBytes, data frames raw bytes of at most kMaxDataBytes. The agent
/// may have been replaced by what runs in the sandbox, so the server checks everything; the agent checks as well.
enum class FrameType : uint16_t {
  // server to agent
  kExec = 1,
  kKill = 2,
  kPutFile = 3,  ///< followed by kData frames with the same id, ended by kEnd
  kMakeFolder = 4,
  kMakeSymlink = 5,
  kList = 6,     ///< answered by kEntry frames, then kDone
  kGetFile = 7,  ///< answered by one kEntry, kData frames, then kDone
  kPing = 8,
  // agent to server
  kReady = 32,  ///< once, first of all
  kStarted = 33,
  kStdout = 34,  ///< raw
  kStderr = 35,  ///< raw
  kExited = 36,  ///< after the last output; the tree is dead by then
  kEntry = 37,
  kDone = 38,
  kError = 39,  ///< this request failed; the stream lives on
  kPong = 40,
  // both ways
  kData = 64,  ///< raw
  kEnd = 65,   ///< the data of this request is complete
};

constexpr size_t kFrameHeaderBytes = 12;
constexpr size_t kMaxControlBytes = size_t{1} << 20;  ///< argv and environment fit in
constexpr size_t kMaxDataBytes = size_t{64} << 10;

struct Frame {
  FrameType type{};
  uint32_t id = 0;
  std::string payload;
};

bool is_data_frame(FrameType type);
/// kMaxDataBytes or kMaxControlBytes.
size_t max_payload_bytes(FrameType type);

/// Appends the wire form of a frame. The payload must be within its bound.
void append_frame(std::string& out, FrameType type, uint32_t id, std::string_view payload);

/// Cuts a byte stream into frames. Holds only what it was fed, whatever a header claims: whoever takes out all frames
/// after each feed bounds it to one frame and one feed. After an error it stays failed: the stream has lost its
/// framing.
class FrameParser {
 public:
  /// Takes in bytes as they come.
  void feed(std::string_view bytes);
  /// The next whole frame; nullopt when more bytes are needed; kProtocol on an unknown type, a nonzero reserved field
  /// or a length out of bounds.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  size_t start_ = 0;
  bool failed_ = false;
};

}  // namespace llm_sandbox
