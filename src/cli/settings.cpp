#include "cli/settings.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "backends/registry.h"
#include "base/text.h"
#include "sandbox/worker_pool.h"

namespace llm_sandbox {
namespace {

constexpr size_t kMaxConfigFileBytes = 1 << 20;

constexpr Setting kTable[] = {
    {"BACKEND", "backend", "", "where programs run; nothing: the first usable of docker, podman, bubblewrap"},
    {"SANDBOX_NETWORK_MODE", "network-mode", "none", "none, or host: the program shares the host's network"},
    {"SANDBOX_MEMORY", "memory", "", "memory of a sandbox, such as 512m or 1.5g; nothing: the language's own"},
    {"SANDBOX_MEM_LIMIT", "mem-limit", "", "the same under its other name; wins over SANDBOX_MEMORY"},
    {"SANDBOX_CPUS", "cpus", "", "cores' worth of time, such as 1.5; nothing: all"},
    {"SANDBOX_CPU_COUNT", "cpu-count", "", "the same as a whole number; wins over SANDBOX_CPUS"},
    {"SANDBOX_READ_ONLY", "read-only", "",
     "true: only the workspace and /tmp are writable (always so with bubblewrap)"},
    {"SANDBOX_PRIVILEGED", "privileged", "", "refused by bubblewrap"},
    {"SANDBOX_CAP_DROP", "cap-drop", "", "capabilities to drop, comma-separated (bubblewrap always drops all)"},
    {"SANDBOX_SECURITY_OPT", "security-opt", "", "no-new-privileges (bubblewrap always sets it)"},
    {"LLM_SANDBOX_PROCESSES", "processes", "",
     "processes and threads of a sandbox, 8 to 32768; nothing: the language's own"},
    {"LLM_SANDBOX_DISK", "disk", "", "workspace and /tmp of a sandbox together; nothing: the language's own"},
    {"LLM_SANDBOX_MAX_TIMEOUT", "max-timeout", "600", "the longest timeout in seconds that a call may ask for"},
    {"LLM_SANDBOX_OUTPUT", "output", "1m", "how much of stdout and of stderr an answer keeps"},
    {"LLM_SANDBOX_WORKERS", "workers", "", "calls that run at the same time; nothing: 4 for each core, at most 32"},
    {"LLM_SANDBOX_QUEUE", "queue", "64", "calls that may wait; more are refused as busy"},
    {"LLM_SANDBOX_CACHE_DIR", "cache-dir", "",
     "where installed packages are kept; nothing: ~/.cache/llm-sandbox, /var/cache/llm-sandbox for root"},
    {"LLM_SANDBOX_CACHE_SIZE", "cache-size", "5g", "how much of them is kept; the least recently used go first"},
    {"LLM_SANDBOX_LOG", "log-level", "info", "trace, debug, info, warn, error or off; logs go to stderr"},
};

std::string file_key(const Setting& setting) {
  std::string key = setting.flag;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// A value of the file as the text that the environment variable would have.
Result<std::string> file_text(const std::string& key, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  if (value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& one) { return one.is_string(); }))
    return join(value.get<std::vector<std::string>>(), ",");
  return fail(ErrorCode::kInvalidArgument, "'" + key + "' must be a text, a number, true, false or a list of texts.");
}

/// What a configuration file says.
struct ConfigFile {
  std::map<std::string, std::string> values;  ///< by variable name
  std::vector<LanguageSource> languages;
};

Result<std::string> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return fail_errno("cannot be opened", errno);
  std::string text(kMaxConfigFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return fail(ErrorCode::kIo, "cannot be read.");
  if (static_cast<size_t>(stream.gcount()) > kMaxConfigFileBytes) return fail(ErrorCode::kTooLarge, "is over 1 MiB.");
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

/// "languages": each an object, or the path of a file with one (relative to the configuration file).
Result<std::vector<LanguageSource>> read_languages(const nlohmann::json& list, const std::filesystem::path& folder) {
  if (!list.is_array()) return fail(ErrorCode::kInvalidArgument, "'languages' must be a list.");
  std::vector<LanguageSource> sources;
  for (const auto& one : list) {
    if (!one.is_string()) {
      sources.push_back({one.dump(), folder.string()});
      continue;
    }
    const std::filesystem::path path = folder / one.get<std::string>();
    auto text = read_file(path.string());
    if (!text) return fail(std::move(text.error()).within("'languages': " + path.string()));
    sources.push_back({std::move(*text), path.parent_path().string()});
  }
  return sources;
}

Result<ConfigFile> read_config_file(const std::string& path) {
  auto text = read_file(path);
  if (!text) return fail(std::move(text.error()));
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::kInvalidArgument, "is not a JSON object.");
  std::vector<std::string> keys{"languages"};
  for (const auto& setting : kTable) keys.push_back(file_key(setting));
  ConfigFile file;
  for (const auto& [key, value] : json.items()) {
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end()) {
      const std::string nearest = nearest_name(key, keys);
      return fail(ErrorCode::kInvalidArgument, "'" + key + "' is not a setting.",
                  nearest.empty() ? "" : "Did you mean '" + nearest + "'?");
    }
    if (known == keys.begin()) {
      auto languages = read_languages(value, std::filesystem::absolute(path).parent_path());
      if (!languages) return fail(std::move(languages.error()));
      file.languages = std::move(*languages);
      continue;
    }
    auto value_text = file_text(key, value);
    if (!value_text) return fail(std::move(value_text.error()));
    file.values[kTable[known - keys.begin() - 1].variable] = *value_text;
  }
  return file;
}

Result<uint64_t> whole_number(const Settings& settings, const std::string& variable, uint64_t smallest,
                              uint64_t largest) {
  const std::string text = settings.text(variable);
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < smallest || number > largest)
    return fail(ErrorCode::kInvalidArgument, variable + " must be a whole number from " + std::to_string(smallest) +
                                                 " to " + std::to_string(largest) + ", not '" + text + "'.");
  return number;
}

/// Fills the limits; the first value that is wrong is the error. What is not set is the language's.
Result<void> read_limits(const Settings& settings, EngineConfig& config) {
  if (settings.get("LLM_SANDBOX_PROCESSES")) {
    const auto processes = whole_number(settings, "LLM_SANDBOX_PROCESSES", 8, 32768);
    if (!processes) return fail(processes.error());
    config.limits.processes = static_cast<uint32_t>(*processes);
  }
  if (settings.get("LLM_SANDBOX_DISK")) {
    const auto disk = parse_memory("LLM_SANDBOX_DISK", settings.text("LLM_SANDBOX_DISK"));
    if (!disk) return fail(disk.error());
    config.limits.disk_bytes = *disk;
  }

  const auto output = parse_size("LLM_SANDBOX_OUTPUT", settings.text("LLM_SANDBOX_OUTPUT"), 1024, uint64_t{64} << 20);
  if (!output) return fail(output.error());
  config.kept_output_bytes = *output;

  auto cache = settings.cache();
  if (!cache) return fail(std::move(cache.error()));
  config.cache = std::move(*cache);

  const auto seconds = whole_number(settings, "LLM_SANDBOX_MAX_TIMEOUT", 1, 86'400);
  if (!seconds) return fail(seconds.error());
  config.max_timeout = std::chrono::seconds(*seconds);
  return {};
}

}  // namespace

std::span<const Setting> Settings::table() { return kTable; }

Settings::Settings(std::map<std::string, std::string> flags, const std::string& config_file,
                   EnvironmentLookup environment)
    : flags_(std::move(flags)), file_name_(config_file), environment_(std::move(environment)) {
  if (config_file.empty()) return;
  auto file = read_config_file(config_file);
  if (file) {
    file_ = std::move(file->values);
    languages_ = std::move(file->languages);
  } else {
    error_ = std::move(file.error()).within("The configuration file " + config_file);
  }
}

std::optional<Settings::Value> Settings::get(const std::string& variable) const {
  const auto setting =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Setting& one) { return variable == one.variable; });
  if (const auto flag = flags_.find(variable); flag != flags_.end())
    return Value{flag->second, "--" + std::string(setting->flag)};
  if (const auto value = environment_(variable)) return Value{*value, variable};
  if (const auto entry = file_.find(variable); entry != file_.end()) return Value{entry->second, file_name_};
  if (setting == std::end(kTable) || *setting->fallback == '\0') return std::nullopt;
  return Value{setting->fallback, "default"};
}

std::string Settings::text(const std::string& variable) const {
  const auto value = get(variable);
  return value ? value->text : std::string();
}

EnvironmentLookup Settings::lookup() const {
  return [this](const std::string& variable) -> std::optional<std::string> {
    const auto value = get(variable);
    if (!value || value->origin == "default") return std::nullopt;
    return value->text;
  };
}

EngineConfig Settings::engine_config() const {
  EngineConfig config;
  config.runtime = error_ ? Result<RuntimeConfig>(tl::unexpect, *error_) : runtime_config_from(lookup());
  config.environment_names = process_environment_names();
  if (!config.runtime) return config;
  if (auto languages = LanguageCatalog::with(languages_))
    config.languages = std::move(*languages);
  else
    config.runtime = fail(std::move(languages.error()).within("The configuration file " + file_name_));
  if (auto limits = read_limits(*this, config); !limits) config.runtime = fail(limits.error());
  if (const auto number = workers(); !number) config.runtime = fail(number.error());
  if (const auto number = queue_capacity(); !number) config.runtime = fail(number.error());
  return config;
}

Result<LayerCache::Options> Settings::cache() const {
  LayerCache::Options options;
  options.folder = trim(text("LLM_SANDBOX_CACHE_DIR"));
  if (options.folder.empty()) options.folder = default_cache_folder(lookup());
  const auto bytes = parse_memory("LLM_SANDBOX_CACHE_SIZE", text("LLM_SANDBOX_CACHE_SIZE"));
  if (!bytes) return fail(Error(bytes.error()));
  options.max_bytes = *bytes;
  options.max_layer_bytes = std::min(options.max_layer_bytes, options.max_bytes);
  return options;
}

BackendFactory Settings::backend_factory() const {
  return [name = get("BACKEND")]() -> Result<std::unique_ptr<Backend>> {
    if (!name || trim(name->text).empty()) return make_default_backend();
    return make_backend(name->text);
  };
}

Result<size_t> Settings::workers() const {
  if (!get("LLM_SANDBOX_WORKERS")) return default_worker_count();
  return whole_number(*this, "LLM_SANDBOX_WORKERS", 1, 256);
}

Result<size_t> Settings::queue_capacity() const { return whole_number(*this, "LLM_SANDBOX_QUEUE", 1, 100'000); }

}  // namespace llm_sandbox
