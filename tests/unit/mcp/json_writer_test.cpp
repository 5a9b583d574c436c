#include "mcp/json_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;

namespace {

std::string base64(std::string_view bytes) {
  std::string out;
  JsonWriter(out).base64(bytes);
  return out;
}

}  // namespace

TEST_CASE("JsonWriter writes compact and indented JSON") {
  const auto write = [](JsonWriter& writer) {
    writer.begin_object().key("a").integer(-1).key("b").begin_array().string("x").boolean(true).raw("null");
    writer.end_array().key("c").begin_object().end_object().key("d").begin_array().end_array().end_object();
  };
  std::string compact;
  JsonWriter compact_writer(compact);
  write(compact_writer);
  CHECK(compact == R"({"a":-1,"b":["x",true,null],"c":{},"d":[]})");

  std::string indented;
  JsonWriter indented_writer(indented, 2);
  write(indented_writer);
  CHECK(indented == "{\n  \"a\": -1,\n  \"b\": [\n    \"x\",\n    true,\n    null\n  ],\n  \"c\": {},\n  \"d\": []\n}");
  CHECK(indented == nlohmann::ordered_json::parse(indented).dump(2));
}

TEST_CASE("JsonWriter escapes every character that JSON wants escaped") {
  for (int c = 0; c < 0x80; ++c) {
    const std::string text(1, static_cast<char>(c));
    CAPTURE(c);
    const std::string json = json_string(text);
    CHECK(nlohmann::json::parse(json).get<std::string>() == text);
    CHECK(json == nlohmann::json(text).dump());
  }
  CHECK(json_string("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") == "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST_CASE("JsonWriter makes valid UTF-8 of any bytes") {
  CHECK(json_string("a\xFFz") == "\"a\xEF\xBF\xBDz\"");
  CHECK(json_string("\xE2\x82") == "\"\xEF\xBF\xBD\"");
  CHECK(json_string("\xED\xA0\x80") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(json_string("\xC3\"") == "\"\xEF\xBF\xBD\\\"\"");
  std::string bytes;
  unsigned state = 7;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525U + 1013904223U;
    bytes.push_back(static_cast<char>(state >> 24));
  }
  const std::string json = json_string(bytes);
  CHECK(nlohmann::json::parse(json).get<std::string>() == sanitize_utf8(bytes));
  CHECK(json.find('\n') == std::string::npos);
}

TEST_CASE("JsonWriter writes numbers that read back the same") {
  for (const double value : {0.0, 1.5, 0.1, 1e300, 5e-324, 123456789.123}) {
    std::string out;
    JsonWriter(out).number(value);
    CHECK(nlohmann::json::parse(out).get<double>() == value);
  }
  std::string out;
  JsonWriter(out).integer(std::numeric_limits<int64_t>::min());
  CHECK(out == "-9223372036854775808");
  out.clear();
  JsonWriter(out).number(std::nan(""));
  CHECK(out == "null");
}

TEST_CASE("JsonWriter::base64 follows RFC 4648 section 10") {
  CHECK(base64("") == "\"\"");
  CHECK(base64("f") == "\"Zg==\"");
  CHECK(base64("fo") == "\"Zm8=\"");
  CHECK(base64("foo") == "\"Zm9v\"");
  CHECK(base64("foob") == "\"Zm9vYg==\"");
  CHECK(base64("fooba") == "\"Zm9vYmE=\"");
  CHECK(base64("foobar") == "\"Zm9vYmFy\"");
  CHECK(base64("\xFF\xFE\xFD") == "\"//79\"");
  CHECK(base64(std::string_view("\0\0\0", 3)) == "\"AAAA\"");
}
