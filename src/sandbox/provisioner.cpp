#include "sandbox/provisioner.h"

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <utility>

#include "base/text.h"
#include "sandbox/installation.h"
#include "sandbox/placeholders.h"

namespace llm_sandbox {
namespace {

/// With the wait for others that make the same.
constexpr std::chrono::seconds kLayerTimeout = 2 * kMakingTime + std::chrono::minutes(1);

LayerDescription description_of(const MakingTarget& target, std::string kind, std::string title) {
  LayerDescription description;
  description.kind = std::move(kind);
  description.language = target.language.name;
  description.title = std::move(title);
  description.ingredients = {std::string(target.backend.name()), target.runtime.executable, target.runtime.version,
                             target.runtime.stamp};
  for (const auto& files : {target.language.runner_files, target.runtime.runner_files})
    for (const auto& file : files) {
      description.ingredients.push_back(file.name);
      description.ingredients.push_back(file.content);
    }
  return description;
}

void add_all(std::vector<std::string>& list, const std::vector<std::string>& more) {
  list.push_back(std::to_string(more.size()));  // where one list ends and the next begins
  list.insert(list.end(), more.begin(), more.end());
}

Error as_install_failure(Error error) {
  const bool keeps_its_code = error.code == ErrorCode::kCancelled || error.code == ErrorCode::kInstallFailed ||
                              error.code == ErrorCode::kBackendUnavailable || error.code == ErrorCode::kInvalidArgument;
  if (!keeps_its_code) error.code = ErrorCode::kInstallFailed;
  return error;
}

}  // namespace

Provisioner::Provisioner(LayerCache::Options cache, EnvironmentLookup environment, std::vector<std::string> names)
    : cache_(std::move(cache)), environment_(std::move(environment)), names_(std::move(names)) {}

Provisioner::~Provisioner() = default;

/// One attempt to prepare a runtime, on a thread of its own that outlives the call that asked first.
struct Provisioner::Preparation {
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::mutex mutex;  ///< guards the three below
  std::condition_variable_any changed;
  bool done = false;
  std::optional<Error> error;
  bool error_told = false;
  std::jthread thread;  ///< last: it is stopped and waited for before the rest goes

  void finish(std::optional<Error> with) {
    const std::lock_guard lock(mutex);
    error = std::move(with);
    done = true;
    changed.notify_all();
  }

  /// False if the patience was not enough. Who is stopped has waited long enough as well.
  bool wait(std::chrono::steady_clock::time_point end, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    return changed.wait_until(lock, stop, end, [this] { return done; });
  }

  bool failed() {
    const std::lock_guard lock(mutex);
    return error.has_value();
  }

  /// The error, to whom asks first.
  std::optional<Error> untold_error() {
    const std::lock_guard lock(mutex);
    return std::exchange(error_told, true) ? std::nullopt : error;
  }
};

std::shared_ptr<Provisioner::Preparation> Provisioner::preparation_of(const MakingTarget& target,
                                                                      const LayerDescription& description,
                                                                      const Command& command) {
  const std::lock_guard lock(mutex_);
  auto& preparation = preparations_[target.language.name + " " + target.runtime.executable + target.runtime.stamp];
  if (preparation) return preparation;
  preparation = std::make_shared<Preparation>();
  preparation->thread = std::jthread([this, &language = target.language, runtime = target.runtime,
                                      &backend = target.backend, config = target.config, description, command,
                                      self = preparation.get()](const std::stop_token& stop) {
    const MakingTarget own{language, runtime, backend, config};
    const auto make = [&](const std::string& folder, const std::stop_token& stop_making) -> Result<void> {
      auto made = make_in(backend, making_spec(own, folder, kPreparedFolder), command, {}, {}, stop_making);
      if (!made) return fail(std::move(made.error()));
      const std::string failure = failure_of(made->exited);
      if (failure.empty()) return {};
      return fail(ErrorCode::kIo, "the preparation " + failure + ": " + made->output);
    };
    try {
      auto layer = cache_.get(description, make, Deadline::after(kLayerTimeout), stop);
      self->finish(layer ? std::nullopt : std::optional(std::move(layer.error())));
    } catch (const std::exception& error) {  // of libraries; the server must not fall by it
      self->finish(Error{ErrorCode::kIo, error.what()});
    }
  });
  return preparation;
}

Result<std::optional<LayerCache::Lease>> Provisioner::prepared(const MakingTarget& target,
                                                               std::chrono::milliseconds patience,
                                                               const RequestContext& context,
                                                               std::vector<std::string>& notes) {
  if (target.language.prepare.empty()) return std::nullopt;
  const Placeholders placeholders(target.language, target.runtime);
  Command command;
  command.argv = placeholders.fill(target.language.prepare);
  command.environment = environment_of(target.language, target.runtime, placeholders);
  command.limits = making_exec_limits();

  auto description = description_of(target, "prepared", target.language.title + " " + target.runtime.version);
  add_all(description.ingredients, command.argv);
  add_all(description.ingredients, command.environment);
  if (auto found = cache_.find(description)) return std::optional(std::move(*found));

  const auto preparation = preparation_of(target, description, command);
  if (context.on_progress) context.on_progress({"preparing " + target.language.title + " once for this machine"});
  const bool done = preparation->wait(preparation->started + patience, context.stop);
  if (context.stop.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled");
  if (!done) return std::nullopt;
  if (preparation->failed()) {
    if (auto error = preparation->untold_error())
      notes.push_back(target.language.title + " runs slower than it could: " + error->text());
    return std::nullopt;
  }
  auto layer = cache_.find(description);
  if (!layer) forget(preparation);  // somebody has removed it since: the next call begins anew
  return layer;
}

void Provisioner::forget(const std::shared_ptr<Preparation>& preparation) {
  const std::lock_guard lock(mutex_);
  std::erase_if(preparations_, [&](const auto& entry) { return entry.second == preparation; });
}

Result<LayerCache::Lease> Provisioner::packages(const MakingTarget& target, const std::vector<std::string>& names,
                                                const std::string& prepared, const RequestContext& context) {
  const PackageManager& packages = *target.language.packages;
  PackageSettings settings = gather_package_settings(
      packages, environment_, names_, [&](const std::string& path) { return target.backend.can_show(path); });

  auto description = description_of(target, "packages", join(names, ", "));
  add_all(description.ingredients, names);
  add_all(description.ingredients, packages.install);
  add_all(description.ingredients, packages.install_environment);
  add_all(description.ingredients, settings.texts);  // another registry may have another package of the name
  if (auto found = cache_.find(description)) return std::move(*found);

  const Installation installation{target, names, prepared, settings, environment_};
  const auto make = [&](const std::string& folder, const std::stop_token& stop) {
    if (context.on_progress) context.on_progress({"installing " + join(names, ", ")});
    return install(installation, folder, context, stop);
  };
  auto layer = cache_.get(description, make, Deadline::after(kLayerTimeout), context.stop);
  if (!layer) return fail(as_install_failure(std::move(layer.error())));
  return layer;
}

}  // namespace llm_sandbox
