#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mcp/json_writer.h"
#include "mcp/protocol.h"

namespace llm_sandbox::mcp {

struct TextContent {
  std::string text;  ///< any bytes
};

struct ImageContent {
  std::string bytes;
  std::string mime_type;
};

/// A document that travels inside the answer: as text if it is UTF-8 text, else as a blob.
struct EmbeddedResource {
  std::string uri;
  std::string bytes;
  std::string mime_type;
};

using ContentBlock = std::variant<TextContent, ImageContent, EmbeddedResource>;

/// What a tool answers, in the terms of no revision.
struct ToolResult {
  std::vector<ContentBlock> content;
  std::string structured;  ///< a JSON object that conforms to the tool's output schema; empty: none
  bool is_error = false;
};

/// The CallToolResult of a revision: what it does not have is left out.
void write_tool_result(JsonWriter& writer, const ToolResult& result, Revision revision);

/// The members that the text and the blob form of ResourceContents share, and then either of them.
void write_resource_contents(JsonWriter& writer, std::string_view uri, std::string_view mime_type,
                             std::string_view bytes);

}  // namespace llm_sandbox::mcp
