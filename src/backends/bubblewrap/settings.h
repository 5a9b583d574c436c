#pragma once

#include "base/error.h"
#include "sandbox/runtime_config.h"

namespace llm_sandbox {

/// Whether bubblewrap can honour the SANDBOX_* settings, apart from memory and cpus, which depend on the host.
/// kInvalidArgument names the variable and what to set instead.
Result<void> check_settings(const RuntimeConfig& config);

/// SANDBOX_NETWORK_MODE=host: the program shares the host's network. Everything else that is valid: none at all.
bool shares_network(const RuntimeConfig& config);

}  // namespace llm_sandbox
