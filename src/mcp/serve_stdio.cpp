#include "mcp/serve_stdio.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/text.h"
#include "mcp/resources.h"
#include "mcp/server.h"
#include "mcp/stdio_transport.h"
#include "mcp/stop_signals.h"
#include "mcp/tools/tools.h"

namespace llm_sandbox::mcp {
namespace {

constexpr std::chrono::milliseconds kTeardown{300};

std::string_view describe(StdioTransport::Ended ended) {
  switch (ended) {
    case StdioTransport::Ended::kEndOfInput:
      return "end of input";
    case StdioTransport::Ended::kStopped:
      return "told to stop";
    case StdioTransport::Ended::kPeerGone:
      return "the client is gone";
  }
  return {};
}

/// What cannot be had now is looked for again by the first call, which can tell.
void warm_up(Engine& engine) {
  try {
    engine.warm_up();
  } catch (const std::exception& error) {
    spdlog::debug("warming up: {}", error.what());
  }
}

}  // namespace

Result<void> serve_stdio(Engine& engine, const ServerOptions& options) {
  Result<StdioStreams> streams = take_standard_streams();
  if (!streams) return fail(std::move(streams.error()));
  UniqueFd signals;
  if (options.stop_fd < 0) {
    Result<UniqueFd> opened = open_stop_signals();
    if (!opened) return fail(std::move(opened.error()));
    signals = std::move(*opened);
  }

  // The workers go first at the end, because what they run uses all the rest.
  const StdioLimits limits;
  StdioTransport transport(std::move(streams->in), std::move(streams->out), limits);
  std::optional<WorkerPool> workers;
  Server server(options.version, make_tools(engine), make_resources(engine),
                [&workers](std::function<void()> task) { return workers->try_post(std::move(task)); });
  workers.emplace(options.workers, options.waiting_calls);

  const auto session = std::make_shared<ClientSession>([&transport] { transport.wake(); });
  const auto outbox = transport.outbox();
  const auto on_line = [&, warm = false](std::string_view line) mutable {
    server.dispatcher().handle(session, outbox, line);
    if (!std::exchange(warm, true)) static_cast<void>(workers->try_post([&engine] { warm_up(engine); }));
  };
  const StdioEvents events{on_line,
                           [&] {
                             Dispatcher::refuse(
                                 *session, *outbox,
                                 {RpcCode::kInvalidRequest, "a message may have " + format_bytes(limits.line_bytes) +
                                                                " at most; this one was dropped"});
                           },
                           [&] { return session->idle(); }};
  const auto ended = transport.run(events, options.stop_fd < 0 ? signals.get() : options.stop_fd);
  spdlog::debug("stdio: {}", describe(ended));

  options.on_end();
  session->cancel_all();
  workers.reset();
  engine.drain(Deadline::after(kTeardown));
  return {};
}

}  // namespace llm_sandbox::mcp
