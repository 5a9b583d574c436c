#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "sandbox/engine.h"
#include "sandbox/worker_pool.h"

namespace llm_sandbox::mcp {

struct ServerOptions {
  std::string version;  ///< of the program
  size_t workers = default_worker_count();
  size_t waiting_calls = 256;  ///< beyond them a call is answered "busy"
  int stop_fd = -1;            ///< readable when the server must end; -1: SIGTERM, SIGINT and SIGHUP are watched
  std::function<void()> on_end = [] {};  ///< called once, when no more input is taken and the calls in flight are ended
};

/// Serves MCP on stdin and stdout until the input ends, the client is gone or the server is told to stop; ends the
/// calls in flight, then returns within a second. Nothing else in the process may use descriptors 0 and 1 afterwards.
/// Where `stop_fd` is -1, call it before the first thread is started (see open_stop_signals). kIo when it cannot start.
Result<void> serve_stdio(Engine& engine, const ServerOptions& options);

}  // namespace llm_sandbox::mcp
