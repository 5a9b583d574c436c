#include "mcp/json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;

namespace {

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("parse_json reads what is JSON") {
  const auto parsed =
      parse_json(R"( {"a":[1,-2,3.5,true,false,null,"x\u00e9\n"],"b":{"c":{}},"n":18446744073709551615} )");
  REQUIRE(parsed);
  CHECK((*parsed)["a"].size() == 7);
  CHECK((*parsed)["a"][6] == "x\xC3\xA9\n");
  CHECK((*parsed)["b"]["c"].is_object());
  CHECK((*parsed)["n"].get<uint64_t>() == UINT64_MAX);
  CHECK(*parse_json("7") == 7);
}

TEST_CASE("parse_json keeps the last of several members with one name") {
  CHECK((*parse_json(R"({"a":{"deep":[1]},"a":2})"))["a"] == 2);
}

TEST_CASE("parse_json refuses what is not JSON") {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "01", "\"\x01\"", "{}{}", "'a'", "\"\xFF\""}) {
    CAPTURE(text);
    const auto parsed = parse_json(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::kProtocol);
  }
}

TEST_CASE("parse_json bounds the depth while it parses") {
  CHECK(parse_json(nested(kMaxJsonDepth)));
  const auto too_deep = parse_json(nested(kMaxJsonDepth + 1));
  REQUIRE_FALSE(too_deep);
  CHECK(too_deep.error().code == ErrorCode::kTooLarge);
  CHECK_FALSE(parse_json(std::string(100'000, '[')));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_FALSE(parse_json(objects));
}

TEST_CASE("parse_json bounds the number of values") {
  std::string many = "[0";
  for (size_t i = 0; i < kMaxJsonValues; ++i) many += ",0";
  const auto parsed = parse_json(many + "]");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == ErrorCode::kTooLarge);
}

TEST_CASE("parse_json replaces half a surrogate pair, as a client may send a text that was cut") {
  const auto text = [](const char* json) { return parse_json(json).value().get<std::string>(); };
  CHECK(text(R"("\ud83d\ude00")") == "\xF0\x9F\x98\x80");
  CHECK(text(R"("a\ud800b")") ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(text(R"("\udc00")") == "\xEF\xBF\xBD");
  CHECK(text(R"("\uD83D\ud83d\ude00")") == "\xEF\xBF\xBD\xF0\x9F\x98\x80");
  CHECK(text(R"("\\ud800\ud800")") == "\\ud800\xEF\xBF\xBD");
  CHECK_FALSE(parse_json(R"("\ud800)"));
  CHECK_FALSE(parse_json(R"("\ud8)"));
  CHECK_FALSE(parse_json("\"\\ud800\xff\""));
}
