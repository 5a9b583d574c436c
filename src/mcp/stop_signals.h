#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

namespace llm_sandbox::mcp {

/// A descriptor that becomes readable when the process is asked to end: SIGTERM, SIGINT or SIGHUP. The signals are
/// blocked in the calling thread and in those it starts later, so call this before the first thread. kIo.
Result<UniqueFd> open_stop_signals();

}  // namespace llm_sandbox::mcp
