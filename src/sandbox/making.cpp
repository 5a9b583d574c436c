#include "sandbox/making.h"

#include "base/text.h"
#include "sandbox/outcome.h"
#include "sandbox/output.h"
#include "sandbox/package_settings.h"

namespace llm_sandbox {
namespace {

constexpr std::chrono::seconds kOpenTimeout{30};
constexpr std::chrono::seconds kTeardownTimeout{10};
constexpr uint64_t kKeptOutput = 16 << 10;

/// What compilers and package managers need while a layer is made.
SandboxLimits making_limits() {
  SandboxLimits limits;
  limits.memory_bytes = uint64_t{3} << 30;
  limits.processes = 1024;
  limits.disk_bytes = uint64_t{1} << 30;
  return limits;
}

}  // namespace

ExecLimits making_exec_limits() {
  ExecLimits limits;
  limits.wall = kMakingTime;
  limits.file_bytes = uint64_t{2} << 30;
  limits.open_files = 4096;
  return limits;
}

std::vector<SandboxFile> runner_files_of(const Language& language, const Runtime& runtime) {
  std::vector<SandboxFile> result;
  for (const auto& files : {language.runner_files, runtime.runner_files})
    for (const auto& file : files) result.push_back({std::string(kRunnerFolder) + "/" + file.name, file.content});
  return result;
}

SandboxSpec making_spec(const MakingTarget& target, const std::string& folder, std::string_view at) {
  SandboxSpec spec;
  spec.config.network_mode = "none";
  spec.limits = making_limits();
  spec.limits.cpus = target.config.cpus;
  spec.runtime_paths = target.runtime.paths;
  spec.files = runner_files_of(target.language, target.runtime);
  spec.mounts.push_back({folder, std::string(at), true});
  return spec;
}

Result<Made> make_in(Backend& backend, const SandboxSpec& spec, const Command& command,
                     const std::function<Result<void>(Session&)>& fill, const RequestContext& context,
                     const std::stop_token& stop) {
  auto sandbox = backend.open(spec, Deadline::after(kOpenTimeout), stop);
  if (!sandbox) return fail(std::move(sandbox.error()));
  Session session(std::move(*sandbox));
  if (fill)
    if (auto filled = fill(session); !filled) return fail(std::move(filled.error()));

  OutputBuffer output(kKeptOutput);
  LastLine last_line;
  const auto on_output = [&](Stream, std::string_view bytes) {
    output.append(bytes);
    if (!context.on_progress) return;
    last_line.append(bytes);
    context.on_progress({without_credentials(sanitize_utf8(last_line.text()))});
  };
  auto exited = session.exec(command, on_output, stop);
  session.close();
  backend.drain(Deadline::after(kTeardownTimeout));  // nothing writes into the folder any more
  if (!exited) return fail(std::move(exited.error()));
  return Made{*exited, without_credentials(sanitize_utf8(output.take()))};
}

std::string failure_of(const ExitedMessage& exited) {
  switch (exited.cause) {
    case EndCause::kTimeout:
      return "took longer than " + format_duration(kMakingTime);
    case EndCause::kMemoryLimit:
      return "used more memory than it may (" + format_bytes(making_limits().memory_bytes) + ")";
    case EndCause::kExited:
      break;
    default:
      return "was stopped";
  }
  if (exited.signal != 0) return "was ended by signal " + std::to_string(exited.signal);
  if (exited.exit_code != 0) return "ended with exit code " + std::to_string(exited.exit_code);
  return "";
}

}  // namespace llm_sandbox
