// What a hostile agent can send: bytes through the frame parser, and every payload through every decoder.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sandbox/agent/frame.h"
#include "sandbox/agent/messages.h"

using namespace llm_sandbox;

namespace {

/// What was decoded must survive another round.
template <typename Message>
void decode_and_back(std::string_view payload) {
  const auto message = decode<Message>(payload);
  if (message && !decode<Message>(encode(*message))) __builtin_trap();
}

void decode_as_each(std::string_view payload) {
  decode_and_back<ReadyMessage>(payload);
  decode_and_back<ExecMessage>(payload);
  decode_and_back<StartedMessage>(payload);
  decode_and_back<ExitedMessage>(payload);
  decode_and_back<PathMessage>(payload);
  decode_and_back<EntryMessage>(payload);
  decode_and_back<ErrorMessage>(payload);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  decode_as_each(bytes);

  // The first byte says how the stream is cut.
  const size_t step = data[0] == 0 ? size : data[0];
  FrameParser parser;
  for (size_t at = 0; at < bytes.size(); at += step) {
    parser.feed(bytes.substr(at, step));
    while (true) {
      const auto frame = parser.next();
      if (!frame) return 0;
      if (!*frame) break;
      if ((*frame)->payload.size() > max_payload_bytes((*frame)->type)) __builtin_trap();
      decode_as_each((*frame)->payload);
    }
  }
  return 0;
}
