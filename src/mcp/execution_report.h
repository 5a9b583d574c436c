#pragma once

#include <string>

#include "mcp/content.h"
#include "sandbox/request.h"

namespace llm_sandbox::mcp {

/// A run as clients see it: a block for each picture and document in drawing order, then the text block; the same with
/// more detail, but without the pictures' bytes, as structured content.
ToolResult report_execution(ExecutionResult result);

/// The text block alone: JSON, indented, the keys in CONTRACT's order.
std::string result_text(const ExecutionResult& result);

/// The JSON Schema that the structured content of report_execution() conforms to.
std::string execution_output_schema();

}  // namespace llm_sandbox::mcp
