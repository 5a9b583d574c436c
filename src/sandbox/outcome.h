#pragma once

#include "languages/language.h"
#include "sandbox/agent/messages.h"
#include "sandbox/limits.h"
#include "sandbox/request.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

/// Names a program's fate: fills exit_code, reason and notes of a result from what the agent reports, what the limits
/// around the sandbox did, and what the program last said on stderr. The first cause that holds stays.
void judge_outcome(const ExitedMessage& exited, const LimitEvents& events, const Language& language,
                   const ExecLimits& exec_limits, const SandboxLimits& limits, ExecutionResult& result);

/// The same where the sandbox could not be made, broke or was given up: an error of ours as a result.
void judge_error(const Error& error, ExecutionResult& result);

/// "30 s", "1.5 s", "250 ms".
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace llm_sandbox
