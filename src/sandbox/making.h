#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "base/error.h"
#include "languages/language.h"
#include "sandbox/request.h"
#include "sandbox/runtime_config.h"
#include "sandbox/session.h"

namespace llm_sandbox {

/// A language on a runtime in a backend: what a layer is made for.
struct MakingTarget {
  const Language& language;
  const Runtime& runtime;
  Backend& backend;
  const RuntimeConfig& config;
};

/// What a package manager or a preparation has.
constexpr std::chrono::seconds kMakingTime{300};
ExecLimits making_exec_limits();

/// The runner files of a language on a runtime, where every sandbox of theirs has them.
std::vector<SandboxFile> runner_files_of(const Language& language, const Runtime& runtime);

/// A sandbox without a network in which the command of a layer runs, with the host's `folder` to be filled at `at`.
SandboxSpec making_spec(const MakingTarget& target, const std::string& folder, std::string_view at);

/// How the command ended, and what it said.
struct Made {
  ExitedMessage exited;
  std::string output;  ///< of both streams, its beginning and its end, without credentials
};

/// Runs a command to its end in a sandbox of its own, into which `fill` (if any) puts files first. Nothing of the
/// sandbox is alive any more when this returns.
Result<Made> make_in(Backend& backend, const SandboxSpec& spec, const Command& command,
                     const std::function<Result<void>(Session&)>& fill, const RequestContext& context,
                     const std::stop_token& stop);

/// "ended with exit code 1", "took longer than 300 s"; empty if it went well.
std::string failure_of(const ExitedMessage& exited);

}  // namespace llm_sandbox
