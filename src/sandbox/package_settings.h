#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "languages/language.h"
#include "sandbox/runtime_config.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

/// The user's own settings for a package manager, as an install sandbox needs them. They may hold secrets (a registry's
/// token): the manager and what it installs see them, nothing else does.
struct PackageSettings {
  std::vector<std::string> environment;                         ///< "NAME=value"
  std::vector<std::pair<std::string, std::string>> home_files;  ///< path below HOME, content
  std::vector<SandboxFile> files;
  std::vector<SandboxMount> mounts;
  std::vector<std::string> texts;  ///< all values and contents: where addresses of registries are named
};

/// Gathers what the language file names, and the settings that hold for all managers: proxies are left out (the egress
/// proxy uses them), certificate files are taken along. `names` are the variables that there are; `can_show` says
/// whether a host path may be mounted. A settings file that is missing, unreadable or over 1 MiB counts for nothing.
PackageSettings gather_package_settings(const PackageManager& packages, const EnvironmentLookup& environment,
                                        const std::vector<std::string>& names,
                                        const std::function<bool(const std::string&)>& can_show);

/// A text of a package manager with the credentials in its addresses left out: "https://…@host".
std::string without_credentials(std::string text);

}  // namespace llm_sandbox
