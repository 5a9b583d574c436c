#include "mcp/tool.h"

#include "mcp/json_writer.h"

namespace llm_sandbox::mcp {

ToolResult Tool::refuse(Reason reason, const std::string& sentence) const {
  ToolResult result;
  result.content.push_back(TextContent{refusal_text(reason, sentence)});
  result.is_error = true;
  return result;
}

std::string refusal_text(Reason reason, const std::string& sentence) {
  std::string text;
  JsonWriter writer(text, 2);
  writer.begin_object().key("exit_code").integer(1).key("stderr").string(sentence).key("stdout").string("");
  writer.key("reason").string(reason_name(reason)).end_object();
  return text;
}

}  // namespace llm_sandbox::mcp
