#include <unistd.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "mcp/serve_stdio.h"
#include "mcp/stop_signals.h"

namespace llm_sandbox {

int serve_command(const Settings& settings) {
  const auto report = [](const Error& error) {
    write_all(STDERR_FILENO, "llm-sandbox: " + error.text() + "\n");
    return 2;
  };
  // Blocked before the first thread is started, so that no other thread takes them.
  auto signals = mcp::open_stop_signals();
  if (!signals) return report(signals.error());
  auto workers = settings.workers();
  if (!workers) return report(workers.error());
  auto waiting_calls = settings.queue_capacity();
  if (!waiting_calls) return report(waiting_calls.error());

  Engine engine(settings.engine_config(), settings.lookup(), settings.backend_factory());
  const auto served = mcp::serve_stdio(engine, {LLM_SANDBOX_VERSION, *workers, *waiting_calls, signals->get()});
  return served ? 0 : report(served.error());
}

}  // namespace llm_sandbox
