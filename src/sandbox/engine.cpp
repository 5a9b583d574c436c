#include "sandbox/engine.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "sandbox/artifacts.h"
#include "sandbox/outcome.h"
#include "sandbox/output.h"
#include "sandbox/session.h"

namespace llm_sandbox {
namespace {

constexpr std::chrono::seconds kOpenTimeout{30};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::vector<std::string> substituted(std::vector<std::string> texts, const Language& language, const Runtime& runtime) {
  for (auto& text : texts) {
    replace_all(text, "{runtime}", runtime.executable);
    replace_all(text, "{file}", std::string(kWorkspace) + "/" + language.file_name);
    replace_all(text, "{runner}", kRunnerFolder);
  }
  return texts;
}

/// Nothing of the server's own environment. The runtime's folder comes first in PATH, so that a program that starts
/// `python3` or `node` by name gets the one that it runs on.
std::vector<std::string> program_environment(const Language& language, const Runtime& runtime) {
  const std::string folder = runtime.executable.substr(0, runtime.executable.rfind('/'));
  std::vector<std::string> environment = {
      "PATH=" + folder + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "HOME=" + std::string(kTemporary),
      "TMPDIR=" + std::string(kTemporary),
      "LANG=C.UTF-8",
      "USER=sandbox",
      "LOGNAME=sandbox",
  };
  auto own = substituted(language.environment, language, runtime);
  std::move(own.begin(), own.end(), std::back_inserter(environment));
  return environment;
}

/// A package name without version or spelling differences (PEP 503 normalisation serves the other managers as well).
std::string package_key(std::string_view name) {
  std::string key = to_lower(trim(name.substr(0, name.find(' '))));
  std::replace_if(
      key.begin(), key.end(), [](char c) { return c == '_' || c == '.'; }, '-');
  return key;
}

/// The runtime's own packages serve a request for libraries; nothing else can be added in this version.
Result<void> require_libraries(const Language& language, const Runtime& runtime,
                               const std::vector<std::string>& wanted) {
  std::vector<std::string> missing;
  for (const auto& library : wanted) {
    const bool present = std::any_of(runtime.libraries.begin(), runtime.libraries.end(),
                                     [&](const auto& one) { return package_key(one) == package_key(library); });
    if (!present) missing.push_back("'" + sanitize_utf8(library) + "'");
  }
  if (missing.empty()) return {};
  return fail(
      ErrorCode::kInstallFailed,
      language.title + " here (" + runtime.executable + ") has no " + join(missing, ", ") +
          ", and this version of llm-sandbox installs no packages.",
      "Use what get_language_details lists, or install the package for that " + language.title + " on the host.");
}

}  // namespace

struct Engine::Plan {
  const Language* language = nullptr;
  Backend* backend = nullptr;
  std::shared_ptr<const RuntimeSearch> search;  ///< keeps the runtime alive
  SandboxSpec spec;
  Command command;

  const Runtime& runtime() const { return *search->runtime; }
};

Engine::Engine(EngineConfig config, EnvironmentLookup environment, BackendFactory make_backend)
    : config_(std::move(config)),
      environment_(std::move(environment)),
      make_backend_(std::move(make_backend)),
      languages_(LanguageCatalog::built_in()) {}

Engine::~Engine() = default;

Result<Backend*> Engine::backend() {
  const std::lock_guard lock(mutex_);
  if (backend_) return backend_.get();
  auto made = make_backend_();
  if (!made) return fail(made.error());
  const Probe probe = (*made)->probe();
  if (!probe.usable)
    return fail(ErrorCode::kBackendUnavailable,
                "The sandbox backend '" + std::string((*made)->name()) + "' cannot be used: " + probe.detail,
                probe.mend);
  backend_ = std::move(*made);
  finder_.reset();  // what was found so far did not know what this backend can show
  return backend_.get();
}

std::shared_ptr<RuntimeFinder> Engine::finder() {
  const std::lock_guard lock(mutex_);
  if (!finder_) {
    Backend* backend = backend_.get();
    finder_ = std::make_shared<RuntimeFinder>(
        [backend](const std::string& path) { return backend == nullptr || backend->can_show(path); }, environment_);
  }
  return finder_;
}

Result<Engine::Plan> Engine::plan(const ExecutionRequest& request) {
  if (!config_.runtime) return fail(config_.runtime.error());
  Plan plan;
  plan.language = languages_.find(request.language);
  if (plan.language == nullptr) {
    const std::string nearest = nearest_name(to_lower(trim(request.language)), languages_.names());
    return fail(ErrorCode::kInvalidArgument,
                "Unsupported language: " + sanitize_utf8(request.language).substr(0, 100) + ".",
                (nearest.empty() ? "" : "Did you mean " + nearest + "? ") + "Supported are " +
                    join(languages_.names(), ", ") + ".");
  }
  if (!plan.language->runnable)
    return fail(ErrorCode::kBackendUnavailable,
                plan.language->title + " is not part of this version of llm-sandbox yet; it comes next.",
                "Use python or javascript meanwhile.");

  auto backend = this->backend();
  if (!backend) return fail(backend.error());
  plan.backend = *backend;
  if (auto checked = plan.backend->check(*config_.runtime); !checked) return fail(checked.error());

  plan.search = finder()->find(*plan.language);
  if (!plan.search->runtime) {
    std::string sentence = "No usable " + plan.language->title + " was found on this machine.";
    for (const auto& rejected : plan.search->rejected) sentence += " " + rejected.path + ": " + rejected.why + ".";
    return fail(ErrorCode::kRuntimeMissing, sentence, "Install it with: " + plan.language->how_to_install);
  }
  if (auto present = require_libraries(*plan.language, plan.runtime(), request.libraries); !present)
    return fail(present.error());

  plan.spec.config = *config_.runtime;
  plan.spec.limits = config_.limits;
  plan.spec.limits.memory_bytes = config_.runtime->memory_bytes.value_or(config_.limits.memory_bytes);
  if (config_.runtime->cpus) plan.spec.limits.cpus = config_.runtime->cpus;
  plan.spec.runtime_paths = plan.runtime().paths;
  for (const auto& files : {plan.language->runner_files, plan.runtime().runner_files})
    for (const auto& file : files)
      plan.spec.files.push_back({std::string(kRunnerFolder) + "/" + file.name, file.content});

  plan.command.argv = substituted(plan.language->run, *plan.language, plan.runtime());
  plan.command.environment = program_environment(*plan.language, plan.runtime());
  plan.command.limits.wall = request.timeout;
  plan.command.limits.file_bytes = plan.spec.limits.disk_bytes;
  return plan;
}

void Engine::execute(const Plan& plan, const ExecutionRequest& request, const RequestContext& context,
                     ExecutionResult& result) {
  if (context.on_progress) context.on_progress({"starting the sandbox"});
  auto sandbox = plan.backend->open(plan.spec, Deadline::after(kOpenTimeout), context.stop);
  if (!sandbox) return judge_error(sandbox.error(), result);
  Session session(std::move(*sandbox));
  if (auto put = session.put_file(plan.language->file_name, request.code); !put)
    return judge_error(put.error(), result);

  OutputBuffer out(config_.kept_output_bytes);
  OutputBuffer err(config_.kept_output_bytes);
  LastLine last_line;
  const auto on_output = [&](Stream stream, std::string_view bytes) {
    (stream == Stream::kStdout ? out : err).append(bytes);
    if (context.on_output) context.on_output(stream, bytes);
    if (!context.on_progress) return;
    last_line.append(bytes);
    context.on_progress({sanitize_utf8(last_line.text())});
  };
  if (context.on_progress) context.on_progress({"running the program"});

  const auto started = std::chrono::steady_clock::now();
  const auto exited = session.exec(plan.command, on_output, context.stop);
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started);
  result.truncated = out.truncated() || err.truncated();
  result.stdout_bytes = out.take();
  result.stderr_bytes = err.take();
  const LimitEvents events = session.closed() ? LimitEvents{} : session.sandbox()->limit_events();

  if (!exited) {
    // The agent itself may have fallen to the memory limit; then the stream just ends.
    const bool memory = exited.error().code == ErrorCode::kBackendUnavailable && events.out_of_memory_kills > 0;
    if (!memory) return judge_error(exited.error(), result);
    ExitedMessage killed;
    killed.cause = EndCause::kMemoryLimit;
    return judge_outcome(killed, events, *plan.language, plan.command.limits, plan.spec.limits, result);
  }
  judge_outcome(*exited, events, *plan.language, plan.command.limits, plan.spec.limits, result);
  if (session.closed()) return;
  auto artifacts = collect_artifacts(session, {config_.max_artifacts, config_.max_artifact_bytes});
  result.artifacts = std::move(artifacts.items);
  std::move(artifacts.notes.begin(), artifacts.notes.end(), std::back_inserter(result.notes));
}

ExecutionResult Engine::run(const ExecutionRequest& request, const RequestContext& context) {
  ExecutionResult result;
  result.language = request.language;
  ExecutionRequest bounded = request;
  if (bounded.timeout > config_.max_timeout) {
    bounded.timeout = config_.max_timeout;
    result.notes.push_back("The timeout was lowered to " + format_duration(config_.max_timeout) +
                           ", the most that this server allows.");
  }
  auto plan = this->plan(bounded);
  if (!plan) {
    judge_error(plan.error(), result);
    return result;
  }
  result.language = plan->language->name;
  result.backend = plan->backend->name();
  result.network = plan->backend->network_reachable(plan->spec.config);
  execute(*plan, bounded, context, result);
  return result;
}

LanguageReport Engine::report(const Language& language) {
  static_cast<void>(backend());  // decides what can be shown; without one, what is installed is told all the same
  LanguageReport report;
  report.language = &language;
  report.how_to_install = language.how_to_install;
  if (!language.runnable) return report;
  const auto search = finder()->find(language);
  report.rejected = search->rejected;
  if (!search->runtime) return report;
  report.available = true;
  report.how_to_install.clear();
  report.version = search->runtime->version;
  report.executable = search->runtime->executable;
  report.libraries = search->runtime->libraries;
  return report;
}

bool Engine::network_reachable() {
  const std::lock_guard lock(mutex_);
  if (!config_.runtime) return false;
  if (backend_) return backend_->network_reachable(*config_.runtime);
  const auto& mode = config_.runtime->network_mode;
  return mode && *mode != "none";
}

void Engine::warm_up() {
  if (!backend()) return;  // the first call tells why
  if (const Language* python = languages_.find("python")) finder()->find(*python);
}

void Engine::drain(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (backend_) backend_->drain(deadline);
}

}  // namespace llm_sandbox
