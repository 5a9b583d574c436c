#include "sandbox/engine.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sandbox/artifacts.h"
#include "sandbox/making.h"
#include "sandbox/outcome.h"
#include "sandbox/output.h"
#include "sandbox/package_names.h"
#include "sandbox/placeholders.h"
#include "sandbox/session.h"

namespace llm_sandbox {
namespace {

constexpr std::chrono::seconds kOpenTimeout{30};

SandboxLimits limits_for(const Language& language, const EngineConfig& config) {
  SandboxLimits limits;
  for (const LimitOverrides& said : {language.limits, config.limits}) {
    limits.memory_bytes = said.memory_bytes.value_or(limits.memory_bytes);
    limits.processes = said.processes.value_or(limits.processes);
    limits.disk_bytes = said.disk_bytes.value_or(limits.disk_bytes);
  }
  limits.memory_bytes = config.runtime->memory_bytes.value_or(limits.memory_bytes);
  limits.cpus = config.runtime->cpus;
  return limits;
}

void append_line(std::string& text, std::string_view more) {
  if (more.empty()) return;
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += more;
}

/// Why there is nothing to run.
void judge_compilation(const ExecutionResult& compiled, std::chrono::milliseconds limit, ExecutionResult& result) {
  const bool ours = compiled.reason == Reason::kCancelled || compiled.reason == Reason::kBackendUnavailable;
  result.exit_code = compiled.exit_code;
  result.reason = ours ? compiled.reason : Reason::kCompileFailed;
  if (compiled.reason == Reason::kTimeout)
    result.notes.push_back("Compiling took longer than " + format_duration(limit) + ", the time that a compiler has.");
  else if (ours)
    result.notes.insert(result.notes.end(), compiled.notes.begin(), compiled.notes.end());
  else
    for (const auto& note : compiled.notes) result.notes.push_back("While compiling: " + note);
}

}  // namespace

struct Engine::Plan {
  const Language* language = nullptr;
  Backend* backend = nullptr;
  std::shared_ptr<const RuntimeSearch> search;  ///< keeps the runtime alive
  std::string file_name;                        ///< of the program, in the workspace
  std::vector<std::string> packages;            ///< to install
  std::vector<LayerCache::Lease> layers;        ///< keep what is mounted
  SandboxSpec spec;
  std::optional<Command> compile;
  Command run;
  std::vector<std::pair<std::string, std::string>> links;  ///< name in the workspace, target

  const Runtime& runtime() const { return *search->runtime; }

  /// The command lines and their surroundings, once language, runtime and packages are known.
  void settle_commands(std::chrono::milliseconds timeout, std::chrono::milliseconds compile_timeout) {
    Placeholders placeholders(*language, runtime());
    placeholders.set("file", std::string(kWorkspace) + "/" + file_name);
    placeholders.set("memory", std::to_string(spec.limits.memory_bytes));
    const auto& manager = language->packages;
    const bool with_packages = !packages.empty();
    run.argv = placeholders.fill(with_packages && !manager->run.empty() ? manager->run : language->run);
    run.environment = environment_of(*language, runtime(), placeholders);
    if (with_packages) {
      set_variables(run.environment, placeholders.fill(manager->environment));
      for (const auto& [name, target] : manager->links) links.emplace_back(name, placeholders.fill(target));
    }
    run.limits.wall = timeout;
    run.limits.file_bytes = spec.limits.disk_bytes;
    if (language->compile.empty()) return;
    compile = run;
    compile->argv =
        placeholders.fill(with_packages && !manager->compile.empty() ? manager->compile : language->compile);
    compile->limits.wall = compile_timeout;
  }

  /// Puts what the commands work on into a new sandbox.
  Result<void> fill(Session& session, const std::string& code) const {
    if (auto put = session.put_file(file_name, code); !put) return put;
    for (const auto& [name, target] : links)
      if (auto made = session.make_symlink(name, target); !made) return made;
    if (!compile) return {};
    return session.make_folder(kBuildFolder.substr(kTemporary.size() + 1), kTemporary);
  }
};

Engine::Engine(EngineConfig config, EnvironmentLookup environment, BackendFactory make_backend)
    : config_(std::move(config)),
      environment_(std::move(environment)),
      make_backend_(std::move(make_backend)),
      provisioner_(config_.cache, environment_, config_.environment_names) {}

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
  plan.language = config_.languages.find(request.language);
  if (plan.language == nullptr) {
    const std::string nearest = nearest_name(to_lower(trim(request.language)), config_.languages.names());
    return fail(ErrorCode::kInvalidArgument,
                "Unsupported language: " + sanitize_utf8(request.language).substr(0, 100) + ".",
                (nearest.empty() ? "" : "Did you mean " + nearest + "? ") + "Supported are " +
                    join(config_.languages.names(), ", ") + ".");
  }
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
  plan.file_name = plan.language->file_name_for(request.language);
  auto packages = checked_packages(*plan.language, request.libraries);
  if (!packages) return fail(std::move(packages.error()));
  plan.packages = missing_packages(*plan.language, plan.runtime(), *packages);

  plan.spec.config = *config_.runtime;
  plan.spec.limits = limits_for(*plan.language, config_);
  plan.spec.runtime_paths = plan.runtime().paths;
  plan.spec.files = runner_files_of(*plan.language, plan.runtime());
  plan.settle_commands(request.timeout, config_.compile_timeout);
  return plan;
}

/// Makes what the call needs beside the sandbox, where it is not there yet.
Result<void> Engine::provide(Plan& plan, const RequestContext& context, ExecutionResult& result) {
  const MakingTarget target{*plan.language, plan.runtime(), *plan.backend, *config_.runtime};
  auto prepared = provisioner_.prepared(target, config_.preparation_patience, context, result.notes);
  if (!prepared) return fail(std::move(prepared.error()));
  const std::string prepared_folder = *prepared ? (*prepared)->folder() : "";
  if (!plan.language->prepare.empty()) plan.spec.mounts.push_back({prepared_folder, std::string(kPreparedFolder)});
  if (*prepared) plan.layers.push_back(std::move(**prepared));

  if (plan.packages.empty()) return {};
  auto packages = provisioner_.packages(target, plan.packages, prepared_folder, context);
  if (!packages) return fail(std::move(packages.error()));
  plan.spec.mounts.push_back({packages->folder(), std::string(kPackagesFolder)});
  plan.layers.push_back(std::move(*packages));
  return {};
}

void Engine::execute(const Plan& plan, const ExecutionRequest& request, const RequestContext& context,
                     ExecutionResult& result) {
  if (context.on_progress) context.on_progress({"starting the sandbox"});
  auto sandbox = plan.backend->open(plan.spec, Deadline::after(kOpenTimeout), context.stop);
  if (!sandbox) return judge_error(sandbox.error(), result);
  Session session(std::move(*sandbox));
  if (auto filled = plan.fill(session, request.code); !filled) return judge_error(filled.error(), result);
  if (plan.compile) {
    if (context.on_progress) context.on_progress({"compiling"});
    compile(plan, session, context, result);
    if (result.reason) return;
  }
  if (context.on_progress) context.on_progress({"running the program"});
  const auto started = std::chrono::steady_clock::now();
  run_program(plan, plan.run, session, context, result);
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started);
  if (session.closed()) return;
  auto artifacts = collect_artifacts(session, {config_.max_artifacts, config_.max_artifact_bytes});
  result.artifacts = std::move(artifacts.items);
  std::move(artifacts.notes.begin(), artifacts.notes.end(), std::back_inserter(result.notes));
}

/// Runs the compiler. What it says stays at the head of stderr, as on a terminal; if it fails, that is all.
void Engine::compile(const Plan& plan, Session& session, const RequestContext& context, ExecutionResult& result) {
  RequestContext to_stderr = context;
  if (context.on_output)
    to_stderr.on_output = [&](Stream, std::string_view bytes) { context.on_output(Stream::kStderr, bytes); };
  ExecutionResult compiled;
  run_program(plan, *plan.compile, session, to_stderr, compiled);
  std::string said = std::move(compiled.stdout_bytes);
  append_line(said, compiled.stderr_bytes);
  result.stderr_bytes = std::move(said);
  result.truncated = compiled.truncated;
  if (compiled.exit_code == 0 && !compiled.reason) return;
  judge_compilation(compiled, plan.compile->limits.wall, result);
}

/// Runs one command and adds what it said and how it ended to the result.
void Engine::run_program(const Plan& plan, const Command& command, Session& session, const RequestContext& context,
                         ExecutionResult& result) {
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
  const auto exited = session.exec(command, on_output, context.stop);
  result.truncated = result.truncated || out.truncated() || err.truncated();
  result.stdout_bytes = out.take();
  append_line(result.stderr_bytes, err.take());
  const LimitEvents events = session.closed() ? LimitEvents{} : session.sandbox()->limit_events();
  if (exited) return judge_outcome(*exited, events, *plan.language, command.limits, plan.spec.limits, result);

  // The agent itself may have fallen to the memory limit; then the stream just ends.
  const bool memory = exited.error().code == ErrorCode::kBackendUnavailable && events.out_of_memory_kills > 0;
  if (!memory) return judge_error(exited.error(), result);
  ExitedMessage killed;
  killed.cause = EndCause::kMemoryLimit;
  judge_outcome(killed, events, *plan.language, command.limits, plan.spec.limits, result);
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
  if (auto provided = provide(*plan, context, result); !provided) {
    judge_error(provided.error(), result);
    return result;
  }
  execute(*plan, bounded, context, result);
  return result;
}

LanguageReport Engine::report(const Language& language) {
  static_cast<void>(backend());  // decides what can be shown; without one, what is installed is told all the same
  LanguageReport report;
  report.language = &language;
  report.how_to_install = language.how_to_install;
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
  if (const Language* python = config_.languages.find("python")) finder()->find(*python);
}

void Engine::drain(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (backend_) backend_->drain(deadline);
}

}  // namespace llm_sandbox
