#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/error.h"
#include "languages/language.h"
#include "sandbox/layer_cache.h"
#include "sandbox/provisioner.h"
#include "sandbox/request.h"
#include "sandbox/runtime_config.h"
#include "sandbox/session.h"

namespace llm_sandbox {

using BackendFactory = std::function<Result<std::unique_ptr<Backend>>()>;

/// How the engine is set up. Errors of the user's configuration are kept as values: they stop no start, each call
/// answers with them.
struct EngineConfig {
  Result<RuntimeConfig> runtime = RuntimeConfig{};
  LanguageCatalog languages = LanguageCatalog::built_in();
  LimitOverrides limits;  ///< win over those of a language; RuntimeConfig's memory wins over both
  std::chrono::milliseconds max_timeout{600'000};
  std::chrono::milliseconds compile_timeout{60'000};
  /// How long a call waits for its language to be prepared for the first time; then it goes on without.
  std::chrono::milliseconds preparation_patience{10'000};
  uint64_t kept_output_bytes = kDefaultKeptOutputBytes;  ///< of each stream
  uint32_t max_artifacts = 50;
  uint64_t max_artifact_bytes = uint64_t{20} << 20;  ///< all together
  LayerCache::Options cache;                         ///< installed packages and prepared runtimes
  std::vector<std::string> environment_names;        ///< of the variables that package managers may get
};

/// What `languages` and get_language_details tell of one language here and now.
struct LanguageReport {
  const Language* language = nullptr;
  bool available = false;
  std::string version;  ///< empty when not available
  std::string executable;
  std::vector<std::string> libraries;
  std::vector<RejectedRuntime> rejected;
  std::string how_to_install;  ///< empty when available
};

/// Runs programs: language, runtime, sandbox, program, artifacts, result. The facade that MCP and the command line use.
/// All members may be called from several threads at once. Nothing is probed before the first call that needs it.
class Engine {
 public:
  /// `make_backend` is asked at the first call, and again while it fails (src/backends/registry.h has the usual ones).
  Engine(EngineConfig config, EnvironmentLookup environment, BackendFactory make_backend);
  ~Engine();

  /// Runs one program to its end in a sandbox of its own. Never throws and never fails: what went wrong is in the
  /// result.
  ExecutionResult run(const ExecutionRequest& request, const RequestContext& context);

  const LanguageCatalog& languages() const { return config_.languages; }
  LanguageReport report(const Language& language);
  /// The backend in use; chosen and probed at the first call. kBackendUnavailable, kInvalidArgument.
  Result<Backend*> backend();
  /// Whether a program would reach a network, as far as is known without probing; for the tool's description.
  bool network_reachable();
  const EngineConfig& config() const { return config_; }

  /// Does ahead what the first call would have to wait for: chooses the backend and looks for Python.
  void warm_up();

  /// Waits for the teardown of closed sandboxes.
  void drain(Deadline deadline);

 private:
  struct Plan;
  Result<Plan> plan(const ExecutionRequest& request);
  Result<void> provide(Plan& plan, const RequestContext& context, ExecutionResult& result);
  void execute(const Plan& plan, const ExecutionRequest& request, const RequestContext& context,
               ExecutionResult& result);
  void compile(const Plan& plan, Session& session, const RequestContext& context, ExecutionResult& result);
  void run_program(const Plan& plan, const Command& command, Session& session, const RequestContext& context,
                   ExecutionResult& result);
  std::shared_ptr<RuntimeFinder> finder();

  EngineConfig config_;
  EnvironmentLookup environment_;
  BackendFactory make_backend_;
  std::mutex mutex_;  ///< guards the two below
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<RuntimeFinder> finder_;
  Provisioner provisioner_;  ///< last: its threads use the backend
};

}  // namespace llm_sandbox
