#pragma once

#include <memory>
#include <vector>

#include "mcp/tool.h"
#include "sandbox/engine.h"

namespace llm_sandbox::mcp {

/// The tools of this program, which keep a reference to the engine.
std::unique_ptr<Tool> make_execute_code(Engine& engine);
std::unique_ptr<Tool> make_get_supported_languages(Engine& engine);
std::unique_ptr<Tool> make_get_language_details(Engine& engine);

/// All of them, in the order that clients see.
std::vector<std::unique_ptr<Tool>> make_tools(Engine& engine);

}  // namespace llm_sandbox::mcp
