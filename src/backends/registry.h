#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/error.h"

namespace llm_sandbox {

/// All backend names that BACKEND may have, in the order of CONTRACT; those that this version lacks included.
std::vector<std::string> backend_names();
/// Those that this version can make.
std::vector<std::string> available_backend_names();

/// A backend by name (any case, '_' = '-'). Unknown names: kInvalidArgument with the list and the nearest name;
/// known ones that this version lacks: kBackendUnavailable.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name);

/// The first usable of docker, podman, bubblewrap that this version has; else kBackendUnavailable with each one's
/// reason.
Result<std::unique_ptr<Backend>> make_default_backend();

}  // namespace llm_sandbox
