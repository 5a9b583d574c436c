#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace llm_sandbox {

/// Looks up an environment variable; nullopt when it is not set. A value so that tests need no process environment.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;
EnvironmentLookup process_environment();
std::vector<std::string> process_environment_names();

/// The SANDBOX_* settings of the reference, parsed but not yet judged: each backend says which it can honour.
/// Nothing set means the backend's own default.
struct RuntimeConfig {
  std::optional<std::string> network_mode;  ///< "none", "host", "bridge", an engine's network name, …
  std::optional<bool> read_only;
  std::optional<uint64_t> memory_bytes;
  std::optional<double> cpus;
  std::optional<bool> privileged;
  std::vector<std::string> cap_drop;
  std::vector<std::string> security_opt;
};

/// Reads SANDBOX_NETWORK_MODE, _MEM_LIMIT, _MEMORY, _CPU_COUNT, _CPUS, _READ_ONLY, _PRIVILEGED, _CAP_DROP,
/// _SECURITY_OPT. Error texts are the reference's own. kInvalidArgument.
Result<RuntimeConfig> runtime_config_from(const EnvironmentLookup& environment);

/// A size as docker spells it: digits with an optional fraction and unit b, k, m, g, t (optional "b" behind it), any
/// case; bare digits are bytes. Also as this program itself writes sizes: "1.5 GiB". `name` is the setting's, for the
/// error text. kInvalidArgument outside [smallest, largest].
Result<uint64_t> parse_size(std::string_view name, std::string_view text, uint64_t smallest, uint64_t largest);
/// A size of memory or disk: at least 16 MiB, below which no interpreter starts.
Result<uint64_t> parse_memory(std::string_view name, std::string_view text);

/// One line for each variable that starts with SANDBOX_ and means nothing, with the nearest name that does.
std::vector<std::string> unknown_sandbox_variables(const std::vector<std::string>& names);

}  // namespace llm_sandbox
