#include "sandbox/installation.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "languages/host_paths.h"
#include "sandbox/egress/proxy.h"
#include "sandbox/egress/relay.h"
#include "sandbox/placeholders.h"

namespace llm_sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEgressSocket = "/opt/llm-sandbox/egress";
constexpr std::string_view kInstallFolder = "/tmp/install";

/// The executable that installing needs, where a sandbox can see it.
struct Tool {
  std::string path;
  std::vector<std::string> places;  ///< host folders to show for it
};

Result<Tool> find_tool(const MakingTarget& target, const std::string& path_list) {
  const PackageManager& packages = *target.language.packages;
  if (packages.tool_names.empty()) return Tool{};
  const std::string bin = target.runtime.executable.substr(0, target.runtime.executable.rfind('/'));
  for (const auto& name : packages.tool_names)
    for (const auto& candidate : find_all_in_path(name, bin + ":" + path_list)) {
      const std::string real = canonical(candidate);
      if (real.empty() || !target.backend.can_show(candidate) || !target.backend.can_show(real)) continue;
      Tool tool{candidate, {}};
      if (in_base_system(candidate) && in_base_system(real)) return tool;
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

Command command_of(const Installation& installation, const std::string& tool) {
  const MakingTarget& target = installation.target;
  const PackageManager& packages = *target.language.packages;
  Placeholders placeholders(target.language, target.runtime);
  placeholders.set("tool", tool);
  Command command;
  command.argv = with_names(placeholders.fill(packages.install), installation.names);
  command.environment = environment_of(target.language, target.runtime, placeholders);
  set_variables(command.environment, installation.settings.environment);
  set_variables(command.environment, placeholders.fill(packages.install_environment));
  set_variables(command.environment, proxy_variables());
  command.folder = kInstallFolder;
  command.limits = making_exec_limits();
  return command;
}

/// A sandbox that sees the tool and the user's settings.
SandboxSpec spec_of(const Installation& installation, const Tool& tool, const std::string& folder) {
  const PackageSettings& settings = installation.settings;
  SandboxSpec spec = making_spec(installation.target, folder, kPackagesFolder);
  spec.mounts.push_back({installation.prepared, std::string(kPreparedFolder)});
  spec.runtime_paths.insert(spec.runtime_paths.end(), tool.places.begin(), tool.places.end());
  spec.files.insert(spec.files.end(), settings.files.begin(), settings.files.end());
  spec.mounts.insert(spec.mounts.end(), settings.mounts.begin(), settings.mounts.end());
  return spec;
}

Result<EgressPolicy> policy_of(const Installation& installation) {
  auto policy = EgressPolicy::from_environment(installation.environment);
  if (!policy) return policy;
  for (const auto& text : installation.settings.texts) policy->allow_hosts_in(text);
  return policy;
}

Error explained(const Installation& installation, const std::string& failure, const std::string& output,
                const std::vector<std::string>& refused) {
  const MakingTarget& target = installation.target;
  std::string text = "Installing " + join(installation.names, ", ") + " failed: " + target.language.package_manager +
                     " " + failure + ".";
  if (network_is_off(target.config))
    text +=
        " SANDBOX_NETWORK_MODE=none keeps installing off the network, too: unset it to let only programs be without.";
  for (const auto& reason : refused) text += " Refused on the way: " + reason + ".";
  if (!output.empty()) text += "\n" + output;
  return {ErrorCode::kInstallFailed, std::move(text)};
}

}  // namespace

Result<void> install(const Installation& installation, const std::string& folder, const RequestContext& context,
                     const std::stop_token& stop) {
  const MakingTarget& target = installation.target;
  const auto tool = find_tool(target, installation.environment("PATH").value_or(""));
  if (!tool) return fail(Error(tool.error()));
  SandboxSpec spec = spec_of(installation, *tool, folder);
  Command command = command_of(installation, tool->path);

  const SocketPlace socket;
  std::unique_ptr<EgressProxy> proxy;
  if (!network_is_off(target.config)) {
    auto policy = policy_of(installation);
    if (!policy) return fail(std::move(policy.error()));
    auto started = EgressProxy::start(std::move(*policy), socket.path());
    if (!started) return fail(std::move(started.error()));
    proxy = std::move(*started);
    spec.files.push_back({std::string(kRelayPath), std::string(relay_program())});
    spec.mounts.push_back({socket.path(), std::string(kEgressSocket), true});
    command.argv = with_relay(std::string(kEgressSocket), command.argv);
  }
  const auto fill = [&](Session& session) -> Result<void> {
    if (auto made = session.make_folder("install", kTemporary); !made) return made;
    for (const auto& [path, content] : installation.settings.home_files)
      if (auto put = session.put_file(path, content, 0600, kTemporary); !put) return put;
    return {};
  };
  const auto made = make_in(target.backend, spec, command, fill, context, stop);
  if (!made) return fail(Error(made.error()));
  const std::string failure = failure_of(made->exited);
  if (failure.empty()) return {};
  return fail(explained(installation, failure, made->output, proxy ? proxy->refused() : std::vector<std::string>{}));
}

}  // namespace llm_sandbox
