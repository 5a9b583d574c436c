#include "base/text.h"

#include <doctest/doctest.h>

using namespace llm_sandbox;

TEST_CASE("sanitize_utf8 keeps what is well-formed and replaces each maximal ill-formed part") {
  CHECK(sanitize_utf8("plain") == "plain");
  CHECK(sanitize_utf8("gr\xC3\xBC\xC3\x9F") == "gr\xC3\xBC\xC3\x9F");
  CHECK(sanitize_utf8(std::string_view("a\0b", 3)) == std::string_view("a\0b", 3));
  CHECK(sanitize_utf8("\xFF") == "\xEF\xBF\xBD");
  CHECK(sanitize_utf8("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
  CHECK(sanitize_utf8("\xE2\x82") == "\xEF\xBF\xBD");                              // cut short: one part
  CHECK(sanitize_utf8("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
  CHECK(sanitize_utf8("\xF4\x90\x80\x80x") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx");
}

TEST_CASE("sanitize_utf8 always yields valid UTF-8") {
  std::string bytes;
  unsigned state = 1;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525U + 1013904223U;
    bytes.push_back(static_cast<char>(state >> 24));
  }
  CHECK_FALSE(is_valid_utf8(bytes));
  CHECK(is_valid_utf8(sanitize_utf8(bytes)));
}

TEST_CASE("nearest_name finds a likely typing error and nothing else") {
  const std::vector<std::string> names = {"docker", "podman", "bubblewrap"};
  CHECK(nearest_name("dokcer", names) == "docker");
  CHECK(nearest_name("bublewrap", names) == "bubblewrap");
  CHECK(nearest_name("xyzzy", names).empty());
}

TEST_CASE("format_bytes") {
  CHECK(format_bytes(1) == "1 byte");
  CHECK(format_bytes(512ULL << 20) == "512 MiB");
  CHECK(format_bytes(1536) == "1.5 KiB");
}

TEST_CASE("printable leaves nothing that steers a terminal") {
  CHECK(printable("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80") == "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80");
  CHECK(printable("\x1b]0;x\x07\n\r\t\x7f") == "?]0;x?????");
  CHECK(printable("\xC2\x9B"
                  "31m\xC2\xA0") == "?31m\xC2\xA0");
  CHECK(printable("a\xE2\x80\xAE"
                  "b\xE2\x80\xA8\xE2\x81\xA6") == "a?b??");
  CHECK(printable("\xFF") == "\xEF\xBF\xBD");
}
