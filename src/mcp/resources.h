#pragma once

#include <vector>

#include "mcp/server.h"
#include "sandbox/engine.h"

namespace llm_sandbox::mcp {

/// The resources of this program: `sandbox://languages`. The engine must outlive them.
std::vector<Resource> make_resources(Engine& engine);

}  // namespace llm_sandbox::mcp
