#include "sandbox/runtime_config.h"

#include <doctest/doctest.h>

#include <map>

using namespace llm_sandbox;

namespace {

EnvironmentLookup from(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

std::string error_of(const std::string& name, const std::string& value) {
  const auto config = runtime_config_from(from({{name, value}}));
  return config ? "" : config.error().sentence;
}

}  // namespace

TEST_CASE("an empty environment sets nothing") {
  const auto config = runtime_config_from(from({}));
  REQUIRE(config);
  CHECK_FALSE(config->network_mode);
  CHECK_FALSE(config->read_only);
  CHECK_FALSE(config->memory_bytes);
  CHECK_FALSE(config->cpus);
  CHECK_FALSE(config->privileged);
  CHECK(config->cap_drop.empty());
}

TEST_CASE("the hardened set of the reference is understood") {
  const auto config = runtime_config_from(from({{"SANDBOX_NETWORK_MODE", " none "},
                                                {"SANDBOX_READ_ONLY", "TRUE"},
                                                {"SANDBOX_CAP_DROP", "ALL, ,NET_RAW"},
                                                {"SANDBOX_SECURITY_OPT", "no-new-privileges:true"},
                                                {"SANDBOX_MEMORY", "512m"},
                                                {"SANDBOX_CPUS", "1.5"}}));
  REQUIRE(config);
  CHECK(config->network_mode == "none");
  CHECK(config->read_only == true);
  CHECK(config->cap_drop == std::vector<std::string>{"ALL", "NET_RAW"});
  CHECK(config->security_opt == std::vector<std::string>{"no-new-privileges:true"});
  CHECK(config->memory_bytes == uint64_t{512} << 20);
  CHECK(config->cpus == 1.5);
}

TEST_CASE("precedence and blanks are those of the reference") {
  CHECK(runtime_config_from(from({{"SANDBOX_MEM_LIMIT", "1g"}, {"SANDBOX_MEMORY", "512m"}}))->memory_bytes ==
        uint64_t{1} << 30);
  CHECK(runtime_config_from(from({{"SANDBOX_MEM_LIMIT", " "}, {"SANDBOX_MEMORY", "512m"}}))->memory_bytes ==
        uint64_t{512} << 20);
  CHECK(runtime_config_from(from({{"SANDBOX_CPU_COUNT", "2.0"}, {"SANDBOX_CPUS", "bad"}}))->cpus == 2.0);
  CHECK_FALSE(runtime_config_from(from({{"SANDBOX_CPU_COUNT", "bad"}, {"SANDBOX_CPUS", "1"}})));
  CHECK_FALSE(runtime_config_from(from({{"SANDBOX_NETWORK_MODE", "  "}}))->network_mode);
}

TEST_CASE("the error texts are those of the reference") {
  CHECK(error_of("SANDBOX_CPU_COUNT", "x") == "SANDBOX_CPU_COUNT must be a positive number");
  CHECK(error_of("SANDBOX_CPU_COUNT", "0") == "SANDBOX_CPU_COUNT must be greater than 0");
  CHECK(error_of("SANDBOX_CPU_COUNT", "1.5") ==
        "SANDBOX_CPU_COUNT must be a whole number when mapped to cpu_period/cpu_quota");
  CHECK(error_of("SANDBOX_CPU_COUNT", "1_0").empty());
  CHECK(error_of("SANDBOX_CPUS", "") == "SANDBOX_CPUS must be a positive number");
  CHECK(error_of("SANDBOX_CPUS", "NaN") == "SANDBOX_CPUS must be a positive number");
  CHECK(error_of("SANDBOX_CPUS", "Infinity") == "SANDBOX_CPUS must be a positive number");
  CHECK(error_of("SANDBOX_CPUS", "-1") == "SANDBOX_CPUS must be greater than 0");
  CHECK(error_of("SANDBOX_CPUS", "1e-9") == "SANDBOX_CPUS is too small to translate into cpu_quota");
  CHECK(error_of("SANDBOX_READ_ONLY", "") == "SANDBOX_READ_ONLY must be one of: true, false, 1, 0, yes, no, on, off");
  CHECK(error_of("SANDBOX_PRIVILEGED", "maybe") ==
        "SANDBOX_PRIVILEGED must be one of: true, false, 1, 0, yes, no, on, off");
}

TEST_CASE("memory sizes") {
  const auto bytes = [](const char* text) { return parse_memory("SANDBOX_MEMORY", text).value_or(0); };
  CHECK(bytes("536870912") == uint64_t{512} << 20);
  CHECK(bytes("536870912b") == uint64_t{512} << 20);
  CHECK(bytes("1.5G") == uint64_t{1536} << 20);
  CHECK(bytes("512MB") == uint64_t{512} << 20);
  CHECK(bytes("1.5 GiB") == uint64_t{1536} << 20);
  CHECK(bytes("512MiB") == uint64_t{512} << 20);
  for (const char* bad :
       {"", "abc", "1Gi", "512 m", "-1", "1..5g", "1mm", "512bb", "64 iB", "64ib", "64 MMiB", "1k", "99999999t"}) {
    CAPTURE(bad);
    CHECK(bytes(bad) == 0);
  }
}

TEST_CASE("unknown SANDBOX_ variables get a warning with the nearest name") {
  const auto lines = unknown_sandbox_variables({"SANDBOX_MEMROY", "SANDBOX_CPUS", "PATH", "SANDBOX_FROBNICATE_ALL"});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("did you mean SANDBOX_MEMORY?") != std::string::npos);
  CHECK(lines[1].find("did you mean") == std::string::npos);
}
