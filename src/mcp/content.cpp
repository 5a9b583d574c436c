#include "mcp/content.h"

#include "base/text.h"

namespace llm_sandbox::mcp {
namespace {

bool is_text(std::string_view mime_type, std::string_view bytes) {
  const bool textual = mime_type.substr(0, 5) == "text/" || mime_type == "application/json";
  return textual && is_valid_utf8(bytes);
}

struct BlockWriter {
  JsonWriter& writer;

  void operator()(const TextContent& block) const { writer.key("type").string("text").key("text").string(block.text); }

  void operator()(const ImageContent& block) const {
    writer.key("type").string("image").key("data").base64(block.bytes).key("mimeType").string(block.mime_type);
  }

  void operator()(const EmbeddedResource& block) const {
    writer.key("type").string("resource").key("resource");
    write_resource_contents(writer, block.uri, block.mime_type, block.bytes);
  }
};

}  // namespace

void write_resource_contents(JsonWriter& writer, std::string_view uri, std::string_view mime_type,
                             std::string_view bytes) {
  writer.begin_object().key("uri").string(uri).key("mimeType").string(mime_type);
  if (is_text(mime_type, bytes)) {
    writer.key("text").string(bytes);
  } else {
    writer.key("blob").base64(bytes);
  }
  writer.end_object();
}

void write_tool_result(JsonWriter& writer, const ToolResult& result, Revision revision) {
  writer.begin_object().key("content").begin_array();
  for (const ContentBlock& block : result.content) {
    writer.begin_object();
    std::visit(BlockWriter{writer}, block);
    writer.end_object();
  }
  writer.end_array();
  if (has_structured_content(revision) && !result.structured.empty()) {
    writer.key("structuredContent").raw(result.structured);
  }
  writer.key("isError").boolean(result.is_error).end_object();
}

}  // namespace llm_sandbox::mcp
