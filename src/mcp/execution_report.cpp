#include "mcp/execution_report.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "mcp/json_writer.h"

namespace llm_sandbox::mcp {
namespace {

constexpr std::array<std::string_view, 5> kImageTypes = {"image/png", "image/jpeg", "image/svg+xml", "image/gif",
                                                         "image/webp"};

/// What the text block and the structured content share, in CONTRACT's order.
void write_outcome(JsonWriter& writer, const ExecutionResult& result) {
  writer.key("exit_code").integer(result.exit_code);
  writer.key("stderr").string(result.stderr_bytes);
  writer.key("stdout").string(result.stdout_bytes);
  if (result.reason) writer.key("reason").string(reason_name(*result.reason));
  if (result.truncated) writer.key("truncated").boolean(true);
  if (result.notes.empty()) return;
  writer.key("notes").begin_array();
  for (const auto& note : result.notes) writer.string(note);
  writer.end_array();
}

std::string structure_of(const ExecutionResult& result) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_outcome(writer, result);
  writer.key("duration").number(std::chrono::duration<double>(result.duration).count());
  writer.key("language").string(result.language);
  writer.key("backend").string(result.backend);
  writer.key("network").boolean(result.network);
  writer.key("artifacts").begin_array();
  for (const auto& artifact : result.artifacts) {
    writer.begin_object().key("name").string(artifact.name).key("mimeType").string(artifact.mime_type);
    writer.key("bytes").integer(static_cast<int64_t>(artifact.content.size())).end_object();
  }
  writer.end_array().end_object();
  return json;
}

/// RFC 3986: all but the unreserved characters and "/" escaped.
std::string percent_encode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  constexpr std::string_view kOtherUnreserved = "-._~/";
  std::string result;
  for (const char c : text) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || kOtherUnreserved.find(c) != std::string_view::npos) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kDigits[byte >> 4];
    result += kDigits[byte & 0xF];
  }
  return result;
}

ContentBlock block_of(Artifact artifact, size_t number) {
  if (std::find(kImageTypes.begin(), kImageTypes.end(), artifact.mime_type) != kImageTypes.end()) {
    return ImageContent{std::move(artifact.content), std::move(artifact.mime_type)};
  }
  std::string uri = "sandbox://artifacts/" + std::to_string(number) + "/" + percent_encode(artifact.name);
  return EmbeddedResource{std::move(uri), std::move(artifact.content), std::move(artifact.mime_type)};
}

}  // namespace

std::string result_text(const ExecutionResult& result) {
  std::string text;
  JsonWriter writer(text, 2);
  writer.begin_object();
  write_outcome(writer, result);
  writer.end_object();
  return text;
}

ToolResult report_execution(ExecutionResult result) {
  ToolResult answer;
  answer.is_error = result.reason && is_stopped(*result.reason);
  answer.structured = structure_of(result);
  std::string text = result_text(result);
  for (auto& artifact : result.artifacts) {
    const size_t number = answer.content.size() + 1;
    answer.content.push_back(block_of(std::move(artifact), number));
  }
  answer.content.push_back(TextContent{std::move(text)});
  return answer;
}

std::string execution_output_schema() {
  // Closed over nothing: later versions may add members.
  return R"({"type":"object","properties":{)"
         R"("exit_code":{"type":"integer","description":"124 timeout, 137 out of memory, 128 + n killed by signal n"},)"
         R"("stderr":{"type":"string"},)"
         R"("stdout":{"type":"string"},)"
         R"("reason":{"type":"string","description":"Why the program did not simply end by itself",)"
         R"("enum":["timeout","memory_limit","process_limit","output_limit","disk_limit","cancelled","signal",)"
         R"("install_failed","compile_failed","policy","backend_unavailable","invalid_argument"]},)"
         R"("truncated":{"type":"boolean","description":"Whether output was left out"},)"
         R"("notes":{"type":"array","items":{"type":"string"}},)"
         R"("duration":{"type":"number","description":"Seconds that the program ran"},)"
         R"("language":{"type":"string"},)"
         R"("backend":{"type":"string"},)"
         R"("network":{"type":"boolean","description":"Whether the program could reach a network"},)"
         R"("artifacts":{"type":"array","items":{"type":"object","properties":{)"
         R"("name":{"type":"string"},"mimeType":{"type":"string"},"bytes":{"type":"integer"}},)"
         R"("required":["name","mimeType","bytes"]}}},)"
         R"("required":["exit_code","stderr","stdout","duration","language","backend","network","artifacts"]})";
}

}  // namespace llm_sandbox::mcp
