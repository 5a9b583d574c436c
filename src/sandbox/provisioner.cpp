#include "sandbox/provisioner.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "languages/host_paths.h"
#include "sandbox/egress/proxy.h"
#include "sandbox/egress/relay.h"
#include "sandbox/outcome.h"
#include "sandbox/output.h"
#include "sandbox/package_settings.h"
#include "sandbox/placeholders.h"
#include "sandbox/session.h"

namespace llm_sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kOpenTimeout{30};
constexpr std::chrono::seconds kTeardownTimeout{10};
constexpr std::chrono::seconds kMakeTimeout{300};   // of a package manager, of a preparation
constexpr std::chrono::seconds kLayerTimeout{660};  // with the wait for others that make the same
constexpr uint64_t kKeptOutput = 16 << 10;

constexpr std::string_view kEgressSocket = "/opt/llm-sandbox/egress";
constexpr std::string_view kInstallFolder = "/tmp/install";

/// What compilers and package managers need while a layer is made.
SandboxLimits making_limits() {
  SandboxLimits limits;
  limits.memory_bytes = uint64_t{3} << 30;
  limits.processes = 1024;
  limits.disk_bytes = uint64_t{1} << 30;
  return limits;
}

SandboxSpec making_spec(const Provisioner::Target& target, const std::string& folder, std::string_view at) {
  SandboxSpec spec;
  spec.config.network_mode = "none";
  spec.limits = making_limits();
  spec.runtime_paths = target.runtime.paths;
  for (const auto& files : {target.language.runner_files, target.runtime.runner_files})
    for (const auto& file : files) spec.files.push_back({std::string(kRunnerFolder) + "/" + file.name, file.content});
  spec.mounts.push_back({folder, std::string(at), true});
  return spec;
}

/// A command run to its end in a sandbox of its own.
struct Made {
  ExitedMessage exited;
  std::string output;  ///< of both streams, its beginning and its end
};

using Fill = std::function<Result<void>(Session&)>;

Result<Made> make_in(Backend& backend, const SandboxSpec& spec, const Command& command, const Fill& fill,
                     const RequestContext& context, const std::stop_token& stop) {
  auto sandbox = backend.open(spec, Deadline::after(kOpenTimeout), stop);
  if (!sandbox) return fail(std::move(sandbox.error()));
  Session session(std::move(*sandbox));
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

/// "ended with exit code 1", "took longer than 300 s"; empty if it went well.
std::string failure_of(const ExitedMessage& exited) {
  switch (exited.cause) {
    case EndCause::kTimeout:
      return "took longer than " + format_duration(kMakeTimeout);
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

LayerDescription description_of(const Provisioner::Target& target, std::string kind, std::string title) {
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

/// The executable that installing needs, where a sandbox can see it.
struct Tool {
  std::string path;
  std::vector<std::string> places;  ///< host folders to show for it
};

Result<Tool> find_tool(const Provisioner::Target& target, const std::string& path_list) {
  const PackageManager& packages = *target.language.packages;
  if (packages.tool_names.empty()) return Tool{};
  const std::string bin = target.runtime.executable.substr(0, target.runtime.executable.rfind('/'));
  for (const auto& name : packages.tool_names)
    for (const auto& candidate : find_all_in_path(name, bin + ":" + path_list)) {
      const std::string real = canonical(candidate);
      if (real.empty() || !target.backend.can_show(candidate) || !target.backend.can_show(real)) continue;
      Tool tool{candidate, {}};
      if (in_base_system(candidate) && in_base_system(real)) return tool;
      const auto prefix_of = [](const std::string& path) {
        const std::string folder = path.substr(0, path.rfind('/'));
        return folder.ends_with("/bin") ? folder.substr(0, folder.size() - 4) : folder;
      };
      tool.places = folders_to_show({prefix_of(candidate), prefix_of(real)});
      return tool;
    }
  return fail(ErrorCode::kInstallFailed,
              "Installing packages for " + target.language.title + " needs " + join(packages.tool_names, " or ") +
                  ", which was not found on this machine.",
              packages.how_to_get_tool.empty() ? "" : "Install it with: " + packages.how_to_get_tool);
}

std::vector<std::string> with_names(const std::vector<std::string>& argv, const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const auto& argument : argv) {
    if (argument == "{names}")
      result.insert(result.end(), names.begin(), names.end());
    else
      result.push_back(argument);
  }
  return result;
}

const std::vector<std::string>& proxy_variables() {
  static const std::vector<std::string> variables = [] {
    const std::string address = "http://127.0.0.1:" + std::to_string(kRelayPort);
    std::vector<std::string> list;
    for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
      list.push_back(std::string(name) + "=" + address);
    for (const char* name : {"no_proxy", "NO_PROXY"}) list.push_back(std::string(name) + "=");
    return list;
  }();
  return variables;
}

bool network_is_off(const RuntimeConfig& config) { return config.network_mode == "none"; }

/// The name of a socket that nobody can guess, in a folder that the sandbox's user can pass. What a killed server left
/// of the kind goes when the next one is made.
class SocketPlace {
 public:
  SocketPlace() {
    sweep();
    folder_ = kPrefix + std::to_string(getpid()) + "-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), folder_);
    chmod(folder_.c_str(), 0711);
    std::random_device random;
    for (int i = 0; i < 4; ++i) name_ += std::to_string(random());
  }
  ~SocketPlace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  SocketPlace(const SocketPlace&) = delete;
  SocketPlace& operator=(const SocketPlace&) = delete;

  std::string path() const { return folder_ + "/" + name_; }

 private:
  static constexpr const char* kPrefix = "/tmp/llm-sandbox-egress-";

  static void sweep() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/tmp", ignored)) {
      const std::string path = entry.path().string();
      if (!path.starts_with(kPrefix)) continue;
      const pid_t owner = std::atoi(path.c_str() + std::strlen(kPrefix));
      if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) fs::remove_all(path, ignored);
    }
  }

  std::string folder_;
  std::string name_;
};

/// One run of a package manager.
class Installation {
 public:
  Installation(const Provisioner::Target& target, const std::vector<std::string>& names, Tool tool,
               PackageSettings settings)
      : target_(target), names_(names), tool_(std::move(tool)), settings_(std::move(settings)) {}

  Result<void> into(const std::string& folder, const std::string& prepared, const EgressPolicy& policy,
                    const RequestContext& context, const std::stop_token& stop) {
    SandboxSpec spec = making_spec(target_, folder, kPackagesFolder);
    spec.mounts.push_back({prepared, std::string(kPreparedFolder)});
    std::move(tool_.places.begin(), tool_.places.end(), std::back_inserter(spec.runtime_paths));
    spec.files.insert(spec.files.end(), settings_.files.begin(), settings_.files.end());
    spec.mounts.insert(spec.mounts.end(), settings_.mounts.begin(), settings_.mounts.end());

    Command command = this->command();
    const SocketPlace socket;
    std::unique_ptr<EgressProxy> proxy;
    if (!network_is_off(target_.config)) {
      auto started = EgressProxy::start(policy, socket.path());
      if (!started) return fail(std::move(started.error()));
      proxy = std::move(*started);
      spec.files.push_back({std::string(kRelayPath), std::string(relay_program())});
      spec.mounts.push_back({socket.path(), std::string(kEgressSocket), true});
      command.argv = with_relay(std::string(kEgressSocket), command.argv);
    }
    const auto fill = [this](Session& session) { return this->fill(session); };
    auto made = make_in(target_.backend, spec, command, fill, context, stop);
    if (!made) return fail(std::move(made.error()));
    const std::string failure = failure_of(made->exited);
    if (failure.empty()) return {};
    return fail(explained(failure, made->output, proxy ? proxy->refused() : std::vector<std::string>{}));
  }

 private:
  Command command() const {
    const PackageManager& packages = *target_.language.packages;
    Placeholders placeholders(target_.language, target_.runtime);
    placeholders.set("tool", tool_.path);
    Command command;
    command.argv = with_names(placeholders.fill(packages.install), names_);
    command.environment = base_environment(target_.runtime);
    set_variables(command.environment, placeholders.fill(target_.language.environment));
    set_variables(command.environment, settings_.environment);
    set_variables(command.environment, placeholders.fill(packages.install_environment));
    set_variables(command.environment, proxy_variables());
    command.folder = kInstallFolder;
    command.limits.wall = kMakeTimeout;
    command.limits.file_bytes = uint64_t{2} << 30;
    command.limits.open_files = 4096;
    return command;
  }

  Result<void> fill(Session& session) const {
    if (auto made = session.make_folder("install", kTemporary); !made) return made;
    for (const auto& [path, content] : settings_.home_files)
      if (auto put = session.put_file(path, content, 0600, kTemporary); !put) return put;
    return {};
  }

  Error explained(const std::string& failure, const std::string& output,
                  const std::vector<std::string>& refused) const {
    std::string text =
        "Installing " + join(names_, ", ") + " failed: " + target_.language.package_manager + " " + failure + ".";
    if (network_is_off(target_.config))
      text +=
          " SANDBOX_NETWORK_MODE=none keeps installing off the network, too: unset it to let only programs be "
          "without.";
    for (const auto& reason : refused) text += " Refused on the way: " + reason + ".";
    if (!output.empty()) text += "\n" + output;
    return {ErrorCode::kInstallFailed, std::move(text)};
  }

  const Provisioner::Target& target_;
  const std::vector<std::string>& names_;
  Tool tool_;
  PackageSettings settings_;
};

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
  bool wait(std::chrono::milliseconds patience, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, stop, patience, [this] { return done; });
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

std::shared_ptr<Provisioner::Preparation> Provisioner::preparation_of(const Target& target,
                                                                      const LayerDescription& description,
                                                                      const Command& command) {
  const std::lock_guard lock(mutex_);
  auto& preparation = preparations_[target.language.name + " " + target.runtime.executable + target.runtime.stamp];
  if (preparation) return preparation;
  preparation = std::make_shared<Preparation>();
  preparation->thread = std::jthread([this, &language = target.language, runtime = target.runtime,
                                      &backend = target.backend, config = target.config, description, command,
                                      self = preparation.get()](const std::stop_token& stop) {
    const Target own{language, runtime, backend, config};
    const auto make = [&](const std::string& folder, const std::stop_token& stop_making) -> Result<void> {
      const auto fill = [](Session&) { return Result<void>(); };
      auto made = make_in(backend, making_spec(own, folder, kPreparedFolder), command, fill, {}, stop_making);
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

Result<std::optional<LayerCache::Lease>> Provisioner::prepared(const Target& target, std::chrono::milliseconds patience,
                                                               const RequestContext& context,
                                                               std::vector<std::string>& notes) {
  if (target.language.prepare.empty()) return std::nullopt;
  const Placeholders placeholders(target.language, target.runtime);
  Command command;
  command.argv = placeholders.fill(target.language.prepare);
  command.environment = base_environment(target.runtime);
  set_variables(command.environment, placeholders.fill(target.language.environment));
  command.limits.wall = kMakeTimeout;
  command.limits.file_bytes = uint64_t{2} << 30;
  command.limits.open_files = 4096;

  auto description = description_of(target, "prepared", target.language.title + " " + target.runtime.version);
  add_all(description.ingredients, command.argv);
  add_all(description.ingredients, command.environment);
  if (auto found = cache_.find(description)) return std::optional(std::move(*found));

  const auto preparation = preparation_of(target, description, command);
  if (context.on_progress) context.on_progress({"preparing " + target.language.title + " once for this machine"});
  const bool done = preparation->wait(patience, context.stop);
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

Result<LayerCache::Lease> Provisioner::packages(const Target& target, const std::vector<std::string>& names,
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

  auto tool = find_tool(target, environment_("PATH").value_or(""));
  if (!tool) return fail(std::move(tool.error()));
  auto policy = EgressPolicy::from_environment(environment_);
  if (!policy) return fail(as_install_failure(std::move(policy.error())));
  for (const auto& text : settings.texts) policy->allow_hosts_in(text);
  Installation installation(target, names, std::move(*tool), std::move(settings));
  const auto make = [&](const std::string& folder, const std::stop_token& stop) {
    if (context.on_progress) context.on_progress({"installing " + join(names, ", ")});
    return installation.into(folder, prepared, *policy, context, stop);
  };
  auto layer = cache_.get(description, make, Deadline::after(kLayerTimeout), context.stop);
  if (!layer) return fail(as_install_failure(std::move(layer.error())));
  return layer;
}

}  // namespace llm_sandbox
