#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/making.h"
#include "sandbox/package_settings.h"

namespace llm_sandbox {

/// One run of a package manager.
struct Installation {
  const MakingTarget& target;
  const std::vector<std::string>& names;  ///< as checked_packages() gives them
  const std::string& prepared;            ///< the runtime's prepared folder; empty for none
  const PackageSettings& settings;
  const EnvironmentLookup& environment;  ///< for PATH and proxies
};

/// Installs into an empty folder of the host, in a sandbox whose only way out is the egress proxy (none at all where
/// the configuration says SANDBOX_NETWORK_MODE=none). kInstallFailed with the manager's own words, kCancelled, and what
/// opening a sandbox gives.
Result<void> install(const Installation& installation, const std::string& folder, const RequestContext& context,
                     const std::stop_token& stop);

}  // namespace llm_sandbox
