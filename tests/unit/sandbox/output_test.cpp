#include "sandbox/output.h"

#include <doctest/doctest.h>

#include "base/text.h"

using namespace llm_sandbox;

TEST_CASE("OutputBuffer keeps everything that fits, byte for byte") {
  OutputBuffer buffer(10);
  buffer.append("01234");
  buffer.append("56789");
  CHECK_FALSE(buffer.truncated());
  CHECK(buffer.take() == "0123456789");
}

TEST_CASE("OutputBuffer keeps the beginning and the end, and says how much is missing") {
  OutputBuffer buffer(10);
  for (char c = 'a'; c <= 'z'; ++c) buffer.append(std::string(1, c));
  CHECK(buffer.truncated());
  CHECK(buffer.take() == "abcde\n[... 16 bytes left out ...]\nvwxyz");
}

TEST_CASE("OutputBuffer gives the same result however the stream is cut into pieces") {
  std::string stream;
  for (int i = 0; i < 1000; ++i) stream += std::to_string(i) + ",";
  OutputBuffer whole(100);
  whole.append(stream);
  const std::string expected = whole.take();
  for (size_t piece : {1U, 3U, 49U, 50U, 51U, 99U, 1000U}) {
    CAPTURE(piece);
    OutputBuffer buffer(100);
    for (size_t at = 0; at < stream.size(); at += piece) buffer.append(std::string_view(stream).substr(at, piece));
    CHECK(buffer.take() == expected);
  }
}

TEST_CASE("OutputBuffer cuts no character in two") {
  for (size_t kept = 8; kept < 24; ++kept) {
    CAPTURE(kept);
    OutputBuffer buffer(kept);
    for (int i = 0; i < 50; ++i) buffer.append("\xE2\x82\xAC");
    CHECK(is_valid_utf8(buffer.take()));
  }
}

TEST_CASE("LastLine follows the newest line") {
  LastLine line;
  CHECK(line.text().empty());
  line.append("one\ntw");
  CHECK(line.text() == "tw");
  line.append("o\n");
  CHECK(line.text() == "two");
  line.append("a\nb\nc\n");
  CHECK(line.text() == "c");
  line.append(std::string(5000, 'x'));
  CHECK(line.text().size() == 200);
}
