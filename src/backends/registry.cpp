#include "backends/registry.h"

#include <algorithm>
#include <array>

#include "backends/bubblewrap/bubblewrap.h"
#include "base/text.h"

namespace llm_sandbox {
namespace {

using Factory = std::unique_ptr<Backend> (*)();

struct Entry {
  std::string_view name;
  Factory make;         ///< null: this version lacks it
  bool default_choice;  ///< taken, in this order, when no backend is named
};

std::unique_ptr<Backend> make_bubblewrap() { return std::make_unique<BubblewrapBackend>(); }

constexpr std::array kBackends = {
    Entry{"docker", nullptr, true},
    Entry{"podman", nullptr, true},
    Entry{"kubernetes", nullptr, false},
    Entry{"micromamba", nullptr, false},
    Entry{"bubblewrap", make_bubblewrap, true},
    Entry{"nsjail", nullptr, false},
    Entry{"windows-mxc", nullptr, false},
    Entry{"wsl2-bubblewrap", nullptr, false},
};

std::string canonical(std::string_view name) {
  std::string result = to_lower(trim(name));
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

tl::unexpected<Error> unknown_backend(std::string_view name) {
  const std::string nearest = nearest_name(canonical(name), backend_names());
  return fail(ErrorCode::kInvalidArgument,
              "Unknown backend '" + sanitize_utf8(trim(name)) + "'. Backends: " + join(backend_names(), ", ") + ".",
              nearest.empty() ? "" : "Did you mean BACKEND=" + nearest + "?");
}

tl::unexpected<Error> missing_backend(std::string_view name) {
  const std::string available = join(available_backend_names(), ", ");
  return fail(
      ErrorCode::kBackendUnavailable,
      "Backend '" + std::string(name) + "' is not part of this version of llm-sandbox, which has: " + available + ".",
      "Set BACKEND to one of these, or leave it unset.");
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& entry : kBackends) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> available_backend_names() {
  std::vector<std::string> names;
  for (const auto& entry : kBackends)
    if (entry.make != nullptr) names.emplace_back(entry.name);
  return names;
}

Result<std::unique_ptr<Backend>> make_backend(std::string_view name) {
  const std::string wanted = canonical(name);
  const auto* const entry =
      std::find_if(kBackends.begin(), kBackends.end(), [&](const Entry& each) { return each.name == wanted; });
  if (entry == kBackends.end()) return unknown_backend(name);
  if (entry->make == nullptr) return missing_backend(entry->name);
  return entry->make();
}

Result<std::unique_ptr<Backend>> make_default_backend() {
  std::string reasons;
  std::string hint;
  for (const auto& entry : kBackends) {
    if (!entry.default_choice || entry.make == nullptr) continue;
    auto backend = entry.make();
    const Probe probe = backend->probe();
    if (probe.usable) return backend;
    reasons.append(" ").append(entry.name).append(": ").append(probe.detail);
    if (hint.empty()) hint = probe.mend;
  }
  return fail(ErrorCode::kBackendUnavailable, "No sandbox can be made on this machine." + reasons, hint);
}

}  // namespace llm_sandbox
