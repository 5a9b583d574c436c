#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "mcp/serve_stdio.h"

namespace llm_sandbox {
namespace {

/// After the grace that the transport gives to calls in flight, and within the second that CONTRACT allows.
constexpr std::chrono::milliseconds kShutdown{400};

/// Says once on stderr where programs will run; a person who left BACKEND unset could not know.
BackendFactory announced(BackendFactory factory) {
  return [factory = std::move(factory)]() -> Result<std::unique_ptr<Backend>> {
    auto backend = factory();
    if (backend) spdlog::info("programs run with the backend '{}'", (*backend)->name());
    return backend;
  };
}

/// The server ends within a second of being told to, whatever a call in flight still waits for (an interpreter that is
/// looked at for the first time, say). The kernel ends the sandboxes with the process.
void exit_at_the_latest(std::chrono::milliseconds grace) {
  try {
    std::thread([grace] {
      std::this_thread::sleep_for(grace);
      _exit(0);
    }).detach();
  } catch (const std::system_error&) {
    _exit(0);
  }
}

}  // namespace

int serve_command(const Settings& settings) {
  const auto workers = settings.workers();
  const auto queue = settings.queue_capacity();
  const EngineConfig config = settings.engine_config();
  if (!config.runtime) spdlog::error("{}", config.runtime.error().text());

  Engine engine(config, settings.lookup(), announced(settings.backend_factory()));
  mcp::ServerOptions options;
  options.version = LLM_SANDBOX_VERSION;
  options.workers = workers.value_or(default_worker_count());
  options.waiting_calls = queue.value_or(options.waiting_calls);
  options.on_end = [] { exit_at_the_latest(kShutdown); };
  const auto served = mcp::serve_stdio(engine, options);
  if (served) return 0;
  write_all(STDERR_FILENO, "llm-sandbox: " + served.error().text() + "\n");
  return 1;
}

}  // namespace llm_sandbox
