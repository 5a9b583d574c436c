#include "backends/bubblewrap/settings.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace llm_sandbox {
namespace {

tl::unexpected<Error> refuse(std::string sentence, std::string hint) {
  return fail(ErrorCode::kInvalidArgument, std::move(sentence), std::move(hint));
}

/// capabilities(7), without CAP_.
const std::vector<std::string>& capability_names() {
  static const std::vector<std::string> names = {"all",
                                                 "audit_control",
                                                 "audit_read",
                                                 "audit_write",
                                                 "block_suspend",
                                                 "bpf",
                                                 "chown",
                                                 "dac_override",
                                                 "dac_read_search",
                                                 "fowner",
                                                 "fsetid",
                                                 "ipc_lock",
                                                 "ipc_owner",
                                                 "kill",
                                                 "lease",
                                                 "linux_immutable",
                                                 "mac_admin",
                                                 "mac_override",
                                                 "mknod",
                                                 "net_admin",
                                                 "net_bind_service",
                                                 "net_broadcast",
                                                 "net_raw",
                                                 "perfmon",
                                                 "setfcap",
                                                 "setgid",
                                                 "setpcap",
                                                 "setuid",
                                                 "sys_admin",
                                                 "sys_boot",
                                                 "sys_chroot",
                                                 "sys_module",
                                                 "sys_nice",
                                                 "sys_pacct",
                                                 "sys_ptrace",
                                                 "sys_rawio",
                                                 "sys_resource",
                                                 "sys_time",
                                                 "sys_tty_config",
                                                 "syslog",
                                                 "wake_alarm",
                                                 "checkpoint_restore"};
  return names;
}

Result<void> check_network(const RuntimeConfig& config) {
  if (!config.network_mode || *config.network_mode == "none" || *config.network_mode == "host") return {};
  return refuse("SANDBOX_NETWORK_MODE is '" + sanitize_utf8(*config.network_mode) +
                    "', but the bubblewrap backend has only 'none' (no network) and 'host' (the host's network).",
                "Set SANDBOX_NETWORK_MODE to none or host, or leave it unset for none.");
}

Result<void> check_privileged(const RuntimeConfig& config) {
  if (!config.privileged.value_or(false)) return {};
  return refuse("SANDBOX_PRIVILEGED is true, but the bubblewrap backend never runs a program with privileges.",
                "Unset SANDBOX_PRIVILEGED or set it to false.");
}

/// All capabilities are always dropped, so a name only has to exist.
Result<void> check_capabilities(const RuntimeConfig& config) {
  for (const auto& given : config.cap_drop) {
    std::string name = to_lower(trim(given));
    if (name.starts_with("cap_")) name.erase(0, 4);
    const auto& known = capability_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    return refuse("SANDBOX_CAP_DROP names '" + sanitize_utf8(given) + "', which is not a capability.",
                  nearest.empty() ? "Use names as in capabilities(7), or ALL."
                                  : "Did you mean " + (nearest == "all" ? "ALL" : nearest) + "?");
  }
  return {};
}

/// no_new_privs is always set; nothing else of docker's options has a meaning here.
Result<void> check_security_options(const RuntimeConfig& config) {
  for (const auto& given : config.security_opt) {
    const std::string option = to_lower(trim(given));
    if (option == "no-new-privileges" || option == "no-new-privileges:true" || option == "no-new-privileges=true")
      continue;
    return refuse("SANDBOX_SECURITY_OPT has '" + sanitize_utf8(given) +
                      "', which the bubblewrap backend cannot honour: it always applies its own system call filter and "
                      "no-new-privileges, and no security module profile.",
                  "Leave out '" + sanitize_utf8(given) + "'; only no-new-privileges is accepted.");
  }
  return {};
}

}  // namespace

Result<void> check_settings(const RuntimeConfig& config) {
  for (const auto& check : {check_network, check_privileged, check_capabilities, check_security_options})
    if (auto checked = check(config); !checked) return checked;
  return {};
}

bool shares_network(const RuntimeConfig& config) { return config.network_mode == "host"; }

}  // namespace llm_sandbox
