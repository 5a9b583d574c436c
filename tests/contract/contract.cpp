#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "contract.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "backends/registry.h"

namespace llm_sandbox::contract {

std::string backend_name() {
  const char* name = std::getenv("CONTRACT_BACKEND");
  return name == nullptr ? "bubblewrap" : name;
}

/// Kept from run to run: preparing a language takes seconds.
std::string cache_folder() { return "/var/tmp/llm-sandbox-tests-" + std::to_string(geteuid()); }

std::unique_ptr<Engine> engine_with(EngineConfig config) {
  if (config.cache.folder.empty()) config.cache.folder = cache_folder();
  config.environment_names = process_environment_names();
  return std::make_unique<Engine>(std::move(config), process_environment(),
                                  [] { return make_backend(backend_name()); });
}

Engine& engine() {
  static const std::unique_ptr<Engine> shared = engine_with({});
  return *shared;
}

ExecutionResult python(const std::string& code, std::chrono::milliseconds timeout) {
  ExecutionRequest request;
  request.code = code;
  request.timeout = timeout;
  auto result = engine().run(request, {});
  INFO("stderr: " << result.stderr_bytes);
  CHECK(result.reason != Reason::kBackendUnavailable);
  return result;
}

Session open_session() {
  auto backend = engine().backend();
  REQUIRE_MESSAGE(backend, backend.error().text());
  auto sandbox = (*backend)->open(SandboxSpec{}, Deadline::after(std::chrono::seconds(30)), {});
  REQUIRE_MESSAGE(sandbox, sandbox.error().text());
  return Session(std::move(*sandbox));
}

bool is_held(const std::string& capability) {
  const auto backend = engine().backend();
  REQUIRE_MESSAGE(backend, backend.error().text());
  for (const auto& one : (*backend)->capabilities())
    if (one.name == capability) return one.level == Capability::Level::kSupported;
  FAIL("no such capability: " << capability);
  return false;
}

std::string unique_marker() {
  static std::atomic<int> next{0};
  return "marker-" + std::to_string(getpid()) + "-" + std::to_string(++next);
}

}  // namespace llm_sandbox::contract
