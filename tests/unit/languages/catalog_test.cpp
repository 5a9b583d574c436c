#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "languages/language.h"

using namespace llm_sandbox;
using nlohmann::json;

namespace {

json valid() {
  return json::parse(R"json({
    "name": "lua", "title": "Lua", "aliases": ["luajit"], "file_name": "main.lua",
    "run": ["{runtime}", "{file}"], "environment": {"LUA_PATH": "{runner}/?.lua"},
    "runner_files": ["javascript/runner/run.cjs"], "out_of_memory_marks": ["not enough memory"],
    "runtime_names": ["lua"], "well_known_places": ["/usr/bin", "~/lua/*/bin"], "minimum_version": "5.3",
    "describe": ["{candidate}", "-e", "{script}"], "describe_script": "javascript/describe.cjs",
    "how_to_install": "sudo apt-get install lua5.4", "package_manager": "luarocks", "use_cases": ["Scripting"],
    "visualization_support": false,
    "examples": [{"title": "Hello", "description": "Print", "code": ["print('a')", "print('b')"]}]
  })json");
}

std::string complaint(const json& document) {
  const auto language = LanguageCatalog::parse(document.dump());
  return language ? "" : language.error().sentence;
}

json with(const std::string& pointer, const json& value) {
  json document = valid();
  document[json::json_pointer(pointer)] = value;
  return document;
}

json without(const std::string& field) {
  json document = valid();
  document.erase(field);
  return document;
}

}  // namespace

TEST_CASE("the built-in catalog has the seven languages in the order of the contract") {
  const auto catalog = LanguageCatalog::built_in();
  CHECK(catalog.names() == std::vector<std::string>{"python", "java", "javascript", "cpp", "go", "ruby", "r"});
  for (const auto& language : catalog.all()) {
    CAPTURE(language.name);
    CHECK(language.visualization_support == (language.name == "python" || language.name == "r"));
    CHECK(language.examples.size() >= 2);
    CHECK(!language.out_of_memory_marks.empty());
  }
}

TEST_CASE("a language is found by any of its names, in any case, with blanks around it") {
  const auto catalog = LanguageCatalog::built_in();
  const std::pair<std::string, std::string> spellings[] = {{"python", "python"},
                                                           {"Python", "python"},
                                                           {" py ", "python"},
                                                           {"python3", "python"},
                                                           {"JAVA", "java"},
                                                           {"javascript", "javascript"},
                                                           {"JS", "javascript"},
                                                           {"node", "javascript"},
                                                           {"NodeJS", "javascript"},
                                                           {"cpp", "cpp"},
                                                           {"C++", "cpp"},
                                                           {"cxx", "cpp"},
                                                           {"cc", "cpp"},
                                                           {"go", "go"},
                                                           {"Golang", "go"},
                                                           {"ruby", "ruby"},
                                                           {"rb\n", "ruby"},
                                                           {"R", "r"},
                                                           {"r", "r"}};
  for (const auto& expected : spellings) {
    CAPTURE(expected.first);
    const Language* language = catalog.find(expected.first);
    REQUIRE(language != nullptr);
    CHECK(language->name == expected.second);
  }
  for (const auto* unknown : {"", " ", "rust", "pythonn", "py thon", "{runtime}"}) {
    CAPTURE(unknown);
    CHECK(catalog.find(unknown) == nullptr);
  }
}

TEST_CASE("files have the names that CONTRACT gives them") {
  const auto catalog = LanguageCatalog::built_in();
  CHECK(catalog.find("python")->file_name == "main.py");
  CHECK(catalog.find("javascript")->file_name == "main.js");
  CHECK(catalog.find("java")->file_name == "Main.java");
  CHECK(catalog.find("cpp")->file_name == "main.cpp");
  CHECK(catalog.find("go")->file_name == "main.go");
  CHECK(catalog.find("ruby")->file_name == "main.rb");
  CHECK(catalog.find("r")->file_name == "main.R");
}

TEST_CASE("a language file becomes a language, scripts filled in") {
  const auto language = LanguageCatalog::parse(valid().dump());
  REQUIRE(language);
  CHECK(language->name == "lua");
  CHECK(language->environment == std::vector<std::string>{"LUA_PATH={runner}/?.lua"});
  REQUIRE(language->runner_files.size() == 1);
  CHECK(language->runner_files[0].name == "run.cjs");
  CHECK(language->runner_files[0].content.find("runMain") != std::string::npos);
  REQUIRE(language->describe.size() == 3);
  CHECK(language->describe[2].find("JSON.stringify") != std::string::npos);
  CHECK(language->examples[0].code == "print('a')\nprint('b')\n");
}

TEST_CASE("a bad language file is refused with the path of the field") {
  const std::pair<json, std::string> cases[] = {
      {without("name"), "name: missing"},
      {with("/name", ""), "name: must not be empty"},
      {with("/name", "Lua 5"), "name: must be lower-case letters, digits, +, # or -"},
      {with("/title", 5), "title: expected string, found number"},
      {with("/aliases", "lj"), "aliases: expected array, found string"},
      {with("/aliases/0", 1), "aliases[0]: expected string, found number"},
      {with("/aliases/0", "LuaJIT"), "aliases[0]: must be lower-case letters, digits, +, # or -"},
      {with("/file_name", "../main.lua"), "file_name: must be a plain file name"},
      {with("/run", json::array()), "run: missing"},
      {with("/run", {"{runtime}"}), "run: must hold {file}"},
      {with("/run/1", "{fil}"),
       "run[1]: unknown placeholder {fil}; known: {runtime}, {bin}, {runner}, {prepared}, {file}, {build}"},
      {with("/environment", json::array()), "environment: expected object, found array"},
      {with("/environment", {{"A B", "x"}}), "environment.A B: not a name of an environment variable"},
      {with("/environment", {{"A", 1}}), "environment.A: expected string, found number"},
      {with("/environment", {{"A", std::string("x\0y", 3)}}), "environment.A: must not hold a zero byte"},
      {with("/runner_files/0", "lua/x"), "runner_files[0]: there is no runner lua/x"},
      {with("/describe_script", "lua/x"), "describe_script: there is no script lua/x"},
      {with("/describe/1", "{scrip}"),
       "describe[1]: unknown placeholder {scrip}; known: {candidate}, {script}, {runner_files}"},
      {without("describe"), "describe: either this or version is needed"},
      {with("/version", {"{candidate}", "-v"}), "describe: either this or version is needed"},
      {with("/limits", {{"memory", "lots"}}), "limits.memory: must be a size such as \"512 MiB\" or \"1 GiB\""},
      {with("/limits", {{"memory", "-1 GiB"}}), "limits.memory: must be a size such as \"512 MiB\" or \"1 GiB\""},
      {with("/limits", {{"processes", 7}}), "limits.processes: must be from 8 to 32768"},
      {with("/limits", {{"threads", 7}}), "limits.threads: unknown field"},
      {with("/compile", {"{names}"}),
       "compile[0]: unknown placeholder {names}; known: {runtime}, {bin}, {runner}, {prepared}, {file}, {build}"},
      {with("/packages", json::object()), "packages.name_pattern: missing"},
      {with("/packages", {{"name_pattern", "(a"}, {"install", {"{names}"}}}),
       "packages.name_pattern: not a regular expression: missing ): (a"},
      {with("/packages", {{"name_pattern", "a"}, {"install", {"luarocks"}}}), "packages.install: must hold {names}"},
      {with("/packages", {{"name_pattern", "a"}, {"install", {"{names}"}}, {"links", {{"../x", "y"}}}}),
       "packages.links.../x: must be a plain file name"},
      {with("/packages", {{"name_pattern", "a"}, {"install", {"{names}"}}, {"settings_files", {"x"}}}),
       "packages.settings_files[0]: must begin with / or ~/"},
      {with("/runtime_names/0", "bin/lua"), "runtime_names[0]: must be a plain file name"},
      {with("/well_known_places/1", "lua/bin"), "well_known_places[1]: must begin with / or ~/"},
      {with("/minimum_version", "v5"), "minimum_version: must be numbers with dots between"},
      {with("/examples", json::array()), "examples: must not be empty"},
      {with("/examples/0", "x"), "examples[0]: expected object, found string"},
      {with("/examples/0/code", "x"), "examples[0].code: expected array, found string"},
      {with("/examples/0/code/1", nullptr), "examples[0].code[1]: expected string, found null"},
      {with("/examples/0/name", "x"), "examples[0].name: unknown field"},
      {with("/enviroment", json::object()), "enviroment: unknown field; did you mean environment?"},
      {json::array(), "expected object, found array"}};
  for (const auto& [document, sentence] : cases) CHECK(complaint(document) == sentence);
  CHECK(complaint(valid()) == "");
}

TEST_CASE("a text that is no JSON is refused with the place of the fault") {
  const auto language = LanguageCatalog::parse("{\n\"name\": }");
  REQUIRE_FALSE(language);
  CHECK(language.error().code == ErrorCode::kInvalidArgument);
  CHECK(language.error().sentence.find("line 2") != std::string::npos);
}

TEST_CASE("a language may be asked for by names that put the program into another file") {
  const auto catalog = LanguageCatalog::built_in();
  const Language* language = catalog.find(" TypeScript ");
  REQUIRE(language == catalog.find("javascript"));
  CHECK(language->file_name_for(" TypeScript ") == "main.ts");
  CHECK(language->file_name_for("mjs") == "main.mjs");
  CHECK(language->file_name_for("node") == "main.js");
  CHECK(catalog.names().size() == 7);
}
