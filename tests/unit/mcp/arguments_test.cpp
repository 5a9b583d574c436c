#include "mcp/arguments.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;
using namespace std::chrono_literals;

namespace {

struct Arguments {
  std::string code;
  std::string language;
  std::vector<std::string> libraries;
  std::chrono::milliseconds timeout{};
};

ArgumentTable<Arguments> table() {
  ArgumentTable<Arguments> result;
  result.add(TextArgument{"code", "The program", 10}, &Arguments::code);
  result.add(TextArgument{"language", "Its language", 10, "python"}, &Arguments::language);
  result.add(TextListArgument{"libraries", "Packages", 3, 5}, &Arguments::libraries);
  result.add(SecondsArgument{"timeout", "Seconds", 30s}, &Arguments::timeout);
  return result;
}

DecodedArguments<Arguments> decode(const char* json) { return table().decode(nlohmann::json::parse(json)); }

}  // namespace

TEST_CASE("the schema has every argument, what is required, and the defaults") {
  const auto schema = nlohmann::json::parse(table().schema());
  CHECK(schema == nlohmann::json::parse(R"({"type":"object","required":["code"],"properties":{
    "code":{"type":"string","description":"The program"},
    "language":{"type":"string","description":"Its language","default":"python"},
    "libraries":{"type":"array","items":{"type":"string"},"maxItems":3,"description":"Packages","default":[]},
    "timeout":{"type":"integer","minimum":1,"description":"Seconds","default":30}}})"));
  CHECK(nlohmann::json::parse(object_schema({})) ==
        nlohmann::json::parse(R"({"type":"object","additionalProperties":false})"));
}

TEST_CASE("what is absent or null gets its default") {
  for (const char* json : {R"({"code":"x"})", R"({"code":"x","language":null,"libraries":null,"timeout":null})"}) {
    const auto decoded = decode(json);
    CHECK(decoded.problems.empty());
    CHECK(decoded.notes.empty());
    CHECK(decoded.value.code == "x");
    CHECK(decoded.value.language == "python");
    CHECK(decoded.value.libraries.empty());
    CHECK(decoded.value.timeout == 30s);
  }
}

TEST_CASE("what models send instead of the right type is understood") {
  CHECK(decode(R"({"code":"","timeout":"30"})").value.timeout == 30s);
  CHECK(decode(R"({"code":"","timeout":" 7 "})").value.timeout == 7s);
  CHECK(decode(R"({"code":"","timeout":12.0})").value.timeout == 12s);
  CHECK(decode(R"({"code":"","timeout":1e300})").problems.empty());
  CHECK(decode(R"({"code":"","libraries":"[\"a\",\"b\"]"})").value.libraries == std::vector<std::string>{"a", "b"});
  CHECK(decode(R"({"code":"[1, 2]"})").value.code == "[1, 2]");
}

TEST_CASE("all bad fields are reported, each with its path") {
  const auto decoded = decode(R"({"code":7,"language":[],"libraries":["a",1,"toolong"],"timeout":0})");
  REQUIRE(decoded.problems.size() == 5);
  CHECK(decoded.problems[0] == "code: must be a string, not a number");
  CHECK(decoded.problems[1] == "language: must be a string, not an array");
  CHECK(decoded.problems[2] == "libraries[1]: must be a string, not a number");
  CHECK(decoded.problems[3].find("libraries[2]: is too long") == 0);
  CHECK(decoded.problems[4].find("timeout: must be greater than 0") == 0);
}

TEST_CASE("each rule has its sentence") {
  const auto problem = [](const char* json) {
    const auto problems = decode(json).problems;
    REQUIRE(problems.size() == 1);
    return problems[0];
  };
  CHECK(problem("{}") == "code: is required but missing");
  CHECK(problem(R"({"code":null})") == "code: is required but missing");
  CHECK(problem("null") == "code: is required but missing");
  CHECK(problem("[]") == "arguments: must be an object, not an array");
  CHECK(problem("\"{}\"") == "arguments: must be an object, not a string");
  CHECK(problem(R"({"code":"12345678901"})").find("code: is too long, 11 bytes") == 0);
  CHECK(problem(R"({"code":"","libraries":["a","b","c","d"]})").find("libraries: has 4 items") == 0);
  CHECK(problem(R"({"code":"","libraries":"numpy"})") == "libraries: must be an array of strings, not a string");
  CHECK(problem(R"({"code":"","libraries":"{}"})") == "libraries: must be an array of strings, not a string");
  CHECK(problem(R"({"code":"","timeout":1.5})") == "timeout: must be a whole number of seconds");
  CHECK(problem(R"({"code":"","timeout":-3})").find("timeout: must be greater than 0") == 0);
  CHECK(problem(R"({"code":"","timeout":"soon"})").find("timeout: must be a whole number") == 0);
  CHECK(problem(R"({"code":"","timeout":"nan"})").find("timeout: must be greater than 0") == 0);
  CHECK(problem(R"({"code":"","timeout":true})").find("timeout: must be a whole number") == 0);
}

TEST_CASE("unknown arguments are ignored with a note that names the nearest") {
  const auto decoded = decode(R"({"code":"x","langauge":"r","zzzzzz":1})");
  CHECK(decoded.problems.empty());
  REQUIRE(decoded.notes.size() == 2);
  CHECK(decoded.notes[0] == "There is no argument \"langauge\"; it was ignored. Did you mean \"language\"?");
  CHECK(decoded.notes[1] == "There is no argument \"zzzzzz\"; it was ignored.");

  nlohmann::json many = {{"code", "x"}};
  for (int i = 0; i < 1000; ++i) many[std::string(1000, 'q') + std::to_string(i)] = 1;
  const auto bounded = table().decode(many);
  CHECK(bounded.notes.size() == 5);
  CHECK(bounded.notes[0].size() < 200);
}
