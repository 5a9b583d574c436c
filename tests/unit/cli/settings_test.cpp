#include "cli/settings.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

using namespace llm_sandbox;

namespace {

EnvironmentLookup from(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

/// A configuration file that goes when the test ends.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    char name[] = "/tmp/llm-sandbox-config-XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("flag wins over environment, environment over file, file over default") {
  const ConfigFile file(
      R"({"memory": "1g", "backend": "bubblewrap", "cap_drop": ["ALL", "NET_RAW"], "read_only": true})");
  const Settings settings({{"SANDBOX_MEMORY", "3g"}}, file.path(),
                          from({{"SANDBOX_MEMORY", "2g"}, {"BACKEND", "docker"}}));
  CHECK_FALSE(settings.error());
  CHECK(settings.get("SANDBOX_MEMORY")->text == "3g");
  CHECK(settings.get("SANDBOX_MEMORY")->origin == "--memory");
  CHECK(settings.get("BACKEND")->text == "docker");
  CHECK(settings.get("BACKEND")->origin == "BACKEND");
  CHECK(settings.get("SANDBOX_CAP_DROP")->text == "ALL,NET_RAW");
  CHECK(settings.get("SANDBOX_CAP_DROP")->origin == file.path());
  CHECK_FALSE(settings.get("LLM_SANDBOX_PROCESSES"));
  CHECK_FALSE(settings.get("SANDBOX_CPUS"));
  const EngineConfig config = settings.engine_config();
  REQUIRE(config.runtime);
  CHECK(config.runtime->memory_bytes == uint64_t{3} << 30);
  CHECK(config.runtime->read_only == true);
}

TEST_CASE("defaults are those that the table shows") {
  const Settings settings({}, "", from({}));
  const EngineConfig config = settings.engine_config();
  REQUIRE(config.runtime);
  CHECK_FALSE(config.runtime->memory_bytes);
  CHECK_FALSE(config.limits.processes);  // the language's own
  CHECK_FALSE(config.limits.disk_bytes);
  CHECK(config.max_timeout == std::chrono::seconds(600));
  CHECK(config.kept_output_bytes == uint64_t{1} << 20);
  CHECK(settings.queue_capacity() == 64U);
  CHECK(config.cache.folder == default_cache_folder(from({})));
  CHECK(config.cache.max_bytes == uint64_t{5} << 30);
  CHECK(config.cache.max_layer_bytes == uint64_t{2} << 30);
}

TEST_CASE("the cache's place and size") {
  const Settings settings({{"LLM_SANDBOX_CACHE_DIR", "/somewhere"}}, "", from({{"LLM_SANDBOX_CACHE_SIZE", "1 GiB"}}));
  const auto cache = settings.engine_config().cache;
  CHECK(cache.folder == "/somewhere");
  CHECK(cache.max_bytes == uint64_t{1} << 30);
  CHECK(cache.max_layer_bytes == uint64_t{1} << 30);  // one layer is not larger than all
  const std::string home = geteuid() == 0 ? "/var/cache/llm-sandbox" : "/home/me/.cache/llm-sandbox";
  CHECK(Settings({}, "", from({{"HOME", "/home/me"}})).engine_config().cache.folder == home);
}

TEST_CASE("a wrong value stops no start but is the answer of each call") {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"LLM_SANDBOX_PROCESSES", "many"},
                                                                      {"LLM_SANDBOX_PROCESSES", "0"},
                                                                      {"LLM_SANDBOX_DISK", "1k"},
                                                                      {"LLM_SANDBOX_OUTPUT", "0"},
                                                                      {"LLM_SANDBOX_CACHE_SIZE", "1m"},
                                                                      {"LLM_SANDBOX_MAX_TIMEOUT", "-1"},
                                                                      {"SANDBOX_CPUS", "x"}}) {
    CAPTURE(name);
    const auto config = Settings({}, "", from({{name, value}})).engine_config();
    REQUIRE_FALSE(config.runtime);
    CHECK(config.runtime.error().sentence.find(name) == 0);
  }
}

TEST_CASE("a configuration file that is wrong is told with its name and the nearest setting") {
  CHECK(Settings({}, "/nonexistent.json", from({})).error()->sentence.find("/nonexistent.json") != std::string::npos);
  const ConfigFile typo(R"({"memroy": "1g"})");
  CHECK(Settings({}, typo.path(), from({})).error()->hint == "Did you mean 'memory'?");
  const ConfigFile broken("{");
  CHECK(Settings({}, broken.path(), from({})).error());
  CHECK_FALSE(Settings({}, broken.path(), from({})).engine_config().runtime);
}
