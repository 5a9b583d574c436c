#include "mcp/execution_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;
using nlohmann::json;

namespace {

json wire(const ToolResult& result, Revision revision = kNewestRevision) {
  std::string text;
  JsonWriter writer(text);
  write_tool_result(writer, result, revision);
  return json::parse(text);
}

}  // namespace

TEST_CASE("a plain run: one text block with three keys in order, and the structured twin") {
  ExecutionResult run;
  run.exit_code = 3;
  run.stdout_bytes = "out\xFF\n";
  run.duration = std::chrono::milliseconds(1500);
  run.language = "python";
  run.backend = "bubblewrap";
  const ToolResult result = report_execution(run);
  CHECK_FALSE(result.is_error);
  REQUIRE(result.content.size() == 1);
  CHECK(std::get<TextContent>(result.content[0]).text ==
        "{\n  \"exit_code\": 3,\n  \"stderr\": \"\",\n  \"stdout\": \"out\xEF\xBF\xBD\\n\"\n}");
  CHECK(json::parse(result.structured) == json::parse(R"({"exit_code":3,"stderr":"","stdout":"out\ufffd\n",
    "duration":1.5,"language":"python","backend":"bubblewrap","network":false,"artifacts":[]})"));
}

TEST_CASE("what there is to say comes after the three keys, and decides isError") {
  ExecutionResult run;
  run.exit_code = 124;
  run.reason = Reason::kTimeout;
  run.truncated = true;
  run.notes = {"One.", "Two."};
  const ToolResult stopped = report_execution(run);
  CHECK(stopped.is_error);
  CHECK(std::get<TextContent>(stopped.content[0]).text ==
        "{\n  \"exit_code\": 124,\n  \"stderr\": \"\",\n  \"stdout\": \"\",\n  \"reason\": \"timeout\",\n"
        "  \"truncated\": true,\n  \"notes\": [\n    \"One.\",\n    \"Two.\"\n  ]\n}");
  run.reason = Reason::kSignal;
  CHECK_FALSE(report_execution(run).is_error);
}

TEST_CASE("pictures are image blocks in order, documents are embedded, the text comes last") {
  ExecutionResult run;
  run.artifacts = {{"figure 1", "image/png", "\x89PNG"},
                   {"a b/\xC3\xBC.html", "text/html", "<p>"},
                   {"x.pdf", "application/pdf", "%PDF\xFF"},
                   {"y.svg", "image/svg+xml", "<svg/>"},
                   {"odd.html", "text/html", "\xFF"}};
  const ToolResult result = report_execution(run);
  const json content = wire(result)["content"];
  REQUIRE(content.size() == 6);
  CHECK(content[0] == json::parse(R"({"type":"image","data":"iVBORw==","mimeType":"image/png"})"));
  CHECK(content[1] == json::parse(R"({"type":"resource","resource":{
    "uri":"sandbox://artifacts/2/a%20b/%C3%BC.html","mimeType":"text/html","text":"<p>"}})"));
  CHECK(content[2] == json::parse(R"({"type":"resource","resource":{
    "uri":"sandbox://artifacts/3/x.pdf","mimeType":"application/pdf","blob":"JVBERv8="}})"));
  CHECK(content[3]["mimeType"] == "image/svg+xml");
  CHECK(content[4]["resource"]["blob"] == "/w==");
  CHECK(content[5]["type"] == "text");
  const json structured = json::parse(result.structured);
  CHECK(structured["artifacts"].size() == 5);
  CHECK(structured["artifacts"][0] == json::parse(R"({"name":"figure 1","mimeType":"image/png","bytes":4})"));
  CHECK_FALSE(wire(result, Revision::k2025_03_26).contains("structuredContent"));
}

TEST_CASE("the structured content has what its schema requires, and every reason is in the schema") {
  const json schema = json::parse(execution_output_schema());
  const json structured = json::parse(report_execution({}).structured);
  for (const auto& name : schema["required"]) CHECK(structured.contains(name.get<std::string>()));
  for (const auto& member : structured.items()) CHECK(schema["properties"].contains(member.key()));
  const auto& reasons = schema["properties"]["reason"]["enum"];
  CHECK(reasons.size() == static_cast<size_t>(Reason::kInvalidArgument) + 1);
  for (int i = 0; i <= static_cast<int>(Reason::kInvalidArgument); ++i) {
    CHECK(std::find(reasons.begin(), reasons.end(), reason_name(static_cast<Reason>(i))) != reasons.end());
  }
}
