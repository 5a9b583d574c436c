#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "sandbox/agent/messages.h"
#include "sandbox/agent/outcome.h"

namespace llm_sandbox::agent {

/// A process that was just started.
struct Launched {
  pid_t pid = -1;
  UniqueFd out;     ///< its stdout, non-blocking
  UniqueFd err;     ///< its stderr, non-blocking
  UniqueFd folder;  ///< its working folder at the start (O_PATH)
};

/// Starts message.argv in a session of its own: stdin at its end, its own pipes as stdout and stderr, no other
/// descriptor, exactly the environment given, no signal blocked, the limits of the message lowered (never raised).
/// Comes back once the new program runs, or with the errno that kept it from running.
Outcome<Launched> launch(const ExecMessage& message);

}  // namespace llm_sandbox::agent
