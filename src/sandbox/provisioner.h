#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/error.h"
#include "languages/language.h"
#include "sandbox/layer_cache.h"
#include "sandbox/making.h"
#include "sandbox/request.h"
#include "sandbox/runtime_config.h"
#include "sandbox/session.h"

namespace llm_sandbox {

/// Makes, once, what calls of a language are then shown read-only: its prepared runtime and sets of installed packages.
/// Both are made in a sandbox and kept in the LayerCache. Thread-safe.
class Provisioner {
 public:
  /// `environment` and `names` (of all that it holds) are where package managers' own settings come from.
  Provisioner(LayerCache::Options cache, EnvironmentLookup environment, std::vector<std::string> names);
  /// Stops preparations.
  ~Provisioner();

  /// What the language's `prepare` makes; nothing where it has none, where it cannot be made (`notes` gets the reason,
  /// once for each runtime), or where making it, which goes on, has not ended `patience` after its start: clients give
  /// up on long calls, and a preparation that ended with its call might never be done. kCancelled.
  Result<std::optional<LayerCache::Lease>> prepared(const MakingTarget& target, std::chrono::milliseconds patience,
                                                    const RequestContext& context, std::vector<std::string>& notes);

  /// The installed packages (names as checked_packages() gives them, at least one). kInstallFailed with the manager's
  /// own words, kCancelled.
  /// `prepared` is the folder of what prepared() gave, shown meanwhile as well; empty for nothing.
  Result<LayerCache::Lease> packages(const MakingTarget& target, const std::vector<std::string>& names,
                                     const std::string& prepared, const RequestContext& context);

 private:
  LayerCache cache_;
  EnvironmentLookup environment_;
  std::vector<std::string> names_;
  struct Preparation;
  std::shared_ptr<Preparation> preparation_of(const MakingTarget& target, const LayerDescription& description,
                                              const Command& command);
  void forget(const std::shared_ptr<Preparation>& preparation);

  std::mutex mutex_;  ///< guards the one below
  /// By language and runtime; each is tried once. Destroyed first: their threads use the members above.
  std::map<std::string, std::shared_ptr<Preparation>> preparations_;
};

}  // namespace llm_sandbox
