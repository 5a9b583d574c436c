#include "sandbox/agent/frame.h"

#include <cstdlib>

namespace llm_sandbox {
namespace {

template <typename Integer>
void append_little_endian(std::string& out, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

template <typename Integer>
Integer little_endian_at(std::string_view bytes, size_t offset) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof value; ++i)
    value =
        static_cast<Integer>(value | static_cast<Integer>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i));
  return value;
}

bool is_known(uint16_t type) {
  return (type >= static_cast<uint16_t>(FrameType::kExec) && type <= static_cast<uint16_t>(FrameType::kPing)) ||
         (type >= static_cast<uint16_t>(FrameType::kReady) && type <= static_cast<uint16_t>(FrameType::kPong)) ||
         type == static_cast<uint16_t>(FrameType::kData) || type == static_cast<uint16_t>(FrameType::kEnd);
}

}  // namespace

bool is_data_frame(FrameType type) {
  return type == FrameType::kStdout || type == FrameType::kStderr || type == FrameType::kData;
}

size_t max_payload_bytes(FrameType type) { return is_data_frame(type) ? kMaxDataBytes : kMaxControlBytes; }

void append_frame(std::string& out, FrameType type, uint32_t id, std::string_view payload) {
  if (payload.size() > max_payload_bytes(type))
    std::abort();  // a broken promise of the caller, never a matter of input
  append_little_endian(out, static_cast<uint32_t>(payload.size()));
  append_little_endian(out, static_cast<uint16_t>(type));
  append_little_endian(out, uint16_t{0});
  append_little_endian(out, id);
  out.append(payload);
}

void FrameParser::feed(std::string_view bytes) {
  if (failed_) return;
  // Moving the rest to the front only once at least as much lies before it costs O(1) for each byte that passes
  // through.
  if (start_ > 0 && start_ >= buffer_.size() - start_) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameParser::next() {
  if (failed_) return fail(ErrorCode::kProtocol, "the stream has lost its framing");
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  if (rest.size() < kFrameHeaderBytes) return std::nullopt;

  const auto length = little_endian_at<uint32_t>(rest, 0);
  const auto type = little_endian_at<uint16_t>(rest, 4);
  const auto reserved = little_endian_at<uint16_t>(rest, 6);
  const auto id = little_endian_at<uint32_t>(rest, 8);
  if (!is_known(type) || reserved != 0 || length > max_payload_bytes(static_cast<FrameType>(type))) {
    failed_ = true;
    buffer_ = {};
    start_ = 0;
    return fail(ErrorCode::kProtocol, "bad frame: type " + std::to_string(type) + ", reserved field " +
                                          std::to_string(reserved) + ", length " + std::to_string(length));
  }
  if (rest.size() - kFrameHeaderBytes < length) return std::nullopt;

  start_ += kFrameHeaderBytes + length;
  return Frame{static_cast<FrameType>(type), id, std::string(rest.substr(kFrameHeaderBytes, length))};
}

}  // namespace llm_sandbox
