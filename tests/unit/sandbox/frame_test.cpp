#include "sandbox/agent/frame.h"

#include <doctest/doctest.h>

#include <vector>

using namespace llm_sandbox;

namespace {

std::string wire(FrameType type, uint32_t id, std::string_view payload) {
  std::string bytes;
  append_frame(bytes, type, id, payload);
  return bytes;
}

std::string header(uint32_t length, uint16_t type, uint16_t reserved) {
  std::string bytes;
  for (const auto& [value, width] : {std::pair{length, 4}, {uint32_t{type}, 2}, {uint32_t{reserved}, 2}, {7u, 4}})
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

}  // namespace

TEST_CASE("the wire form of a frame is little endian") {
  CHECK(wire(FrameType::kStdout, 0x01020304, "ab") == std::string("\x02\x00\x00\x00\x22\x00\x00\x00\x04\x03\x02\x01"
                                                                  "ab",
                                                                  14));
}

TEST_CASE("frames are found again however the stream is cut") {
  const std::string stream = wire(FrameType::kReady, 0, "one") + wire(FrameType::kEnd, 9, "") +
                             wire(FrameType::kData, 9, std::string(kMaxDataBytes, 'x')) +
                             wire(FrameType::kExec, 1, std::string(kMaxControlBytes, 'y'));
  for (const size_t step : {size_t{1}, size_t{5}, size_t{12}, size_t{4096}, stream.size()}) {
    CAPTURE(step);
    FrameParser parser;
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += step) {
      parser.feed(std::string_view(stream).substr(at, step));
      for (auto frame = parser.next(); frame && *frame; frame = parser.next()) frames.push_back(**frame);
    }
    REQUIRE(frames.size() == 4);
    CHECK(frames[0].type == FrameType::kReady);
    CHECK(frames[0].payload == "one");
    CHECK(frames[1].id == 9);
    CHECK(frames[1].payload.empty());
    CHECK(frames[2].payload.size() == kMaxDataBytes);
    CHECK(frames[3].payload == std::string(kMaxControlBytes, 'y'));
  }
}

TEST_CASE("a bad header fails for good, before its payload is waited for") {
  for (const auto& bytes :
       {header(0, 0, 0), header(0, 9, 0), header(0, 41, 0), header(0, 66, 0), header(0, 0xffff, 0), header(0, 8, 1),
        header(kMaxControlBytes + 1, 1, 0), header(kMaxDataBytes + 1, 64, 0), header(0xffffffff, 64, 0)}) {
    FrameParser parser;
    parser.feed(bytes);
    const auto bad = parser.next();
    REQUIRE_FALSE(bad);
    CHECK(bad.error().code == ErrorCode::kProtocol);
    parser.feed(wire(FrameType::kPing, 1, ""));
    CHECK_FALSE(parser.next());
  }
}
