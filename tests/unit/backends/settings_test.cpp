#include "backends/bubblewrap/settings.h"

#include <doctest/doctest.h>

using namespace llm_sandbox;

namespace {

RuntimeConfig network(const char* mode) {
  RuntimeConfig config;
  config.network_mode = mode;
  return config;
}

RuntimeConfig cap_drop(const char* name) {
  RuntimeConfig config;
  config.cap_drop = {name};
  return config;
}

RuntimeConfig security_opt(const char* option) {
  RuntimeConfig config;
  config.security_opt = {option};
  return config;
}

RuntimeConfig flags(std::optional<bool> read_only, std::optional<bool> privileged) {
  RuntimeConfig config;
  config.read_only = read_only;
  config.privileged = privileged;
  return config;
}

}  // namespace

TEST_CASE("settings that bubblewrap honours are accepted") {
  for (const auto& config : {RuntimeConfig{}, network("none"), network("host"), cap_drop("ALL"), cap_drop("all"),
                             cap_drop("NET_RAW"), cap_drop("cap_sys_admin"), cap_drop("CAP_CHECKPOINT_RESTORE"),
                             security_opt("no-new-privileges"), security_opt("no-new-privileges:true"),
                             security_opt("no-new-privileges=true"), flags(true, false), flags(false, std::nullopt)}) {
    const auto checked = check_settings(config);
    if (!checked) CAPTURE(checked.error().text());
    CHECK(checked);
  }
}

TEST_CASE("settings that bubblewrap cannot honour are errors that name the variable, the value and the way out") {
  struct Row {
    RuntimeConfig config;
    const char* variable;
    const char* value;
    const char* hint;
  };
  for (const auto& [config, variable, value, hint] :
       {Row{network("bridge"), "SANDBOX_NETWORK_MODE", "'bridge'", "none or host"},
        Row{network("Host"), "SANDBOX_NETWORK_MODE", "'Host'", "none or host"},
        Row{network("container:web"), "SANDBOX_NETWORK_MODE", "'container:web'", "none or host"},
        Row{flags(std::nullopt, true), "SANDBOX_PRIVILEGED", "true", "false"},
        Row{cap_drop("NET_RAWW"), "SANDBOX_CAP_DROP", "'NET_RAWW'", "net_raw"},
        Row{cap_drop("CAP_"), "SANDBOX_CAP_DROP", "'CAP_'", "capabilities(7)"},
        Row{security_opt("seccomp=unconfined"), "SANDBOX_SECURITY_OPT", "'seccomp=unconfined'", "Leave out"},
        Row{security_opt("apparmor=docker-default"), "SANDBOX_SECURITY_OPT", "'apparmor=docker-default'", "Leave out"},
        Row{security_opt("label=disable"), "SANDBOX_SECURITY_OPT", "'label=disable'", "Leave out"},
        Row{security_opt("no-new-privileges:false"), "SANDBOX_SECURITY_OPT", "'no-new-privileges:false'",
            "Leave out"}}) {
    CAPTURE(value);
    const auto checked = check_settings(config);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kInvalidArgument);
    CHECK(checked.error().sentence.find(variable) != std::string::npos);
    CHECK(checked.error().sentence.find(value) != std::string::npos);
    CHECK(checked.error().hint.find(hint) != std::string::npos);
  }
}

TEST_CASE("only the host's network is a network") {
  CHECK_FALSE(shares_network(RuntimeConfig{}));
  CHECK_FALSE(shares_network(network("none")));
  CHECK(shares_network(network("host")));
}
