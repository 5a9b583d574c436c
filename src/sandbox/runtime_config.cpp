#include "sandbox/runtime_config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace llm_sandbox {
namespace {

/// The reference expresses cores as a quota within this period; a share below one unit of it cannot be given.
constexpr double kCpuPeriodMicroseconds = 100'000;

constexpr std::array<std::string_view, 9> kSandboxVariables = {
    "SANDBOX_NETWORK_MODE", "SANDBOX_MEM_LIMIT",  "SANDBOX_MEMORY",   "SANDBOX_CPU_COUNT",   "SANDBOX_CPUS",
    "SANDBOX_READ_ONLY",    "SANDBOX_PRIVILEGED", "SANDBOX_CAP_DROP", "SANDBOX_SECURITY_OPT"};

/// The value without surrounding blanks; nullopt when unset or blank.
std::optional<std::string> text_of(const EnvironmentLookup& environment, const std::string& name) {
  const auto value = environment(name);
  if (!value || trim(*value).empty()) return std::nullopt;
  return std::string(trim(*value));
}

std::vector<std::string> list_of(const EnvironmentLookup& environment, const std::string& name) {
  std::vector<std::string> items;
  for (const auto& item : split(environment(name).value_or(""), ','))
    if (!trim(item).empty()) items.emplace_back(trim(item));
  return items;
}

/// Unlike the texts, a blank value is an error here, as in the reference.
Result<std::optional<bool>> flag_of(const EnvironmentLookup& environment, const std::string& name) {
  const auto value = environment(name);
  if (!value) return std::optional<bool>{};
  const std::string word = to_lower(trim(*value));
  if (word == "true" || word == "1" || word == "yes" || word == "on") return std::optional(true);
  if (word == "false" || word == "0" || word == "no" || word == "off") return std::optional(false);
  return fail(ErrorCode::kInvalidArgument, name + " must be one of: true, false, 1, 0, yes, no, on, off");
}

/// A finite decimal number as Python's Decimal reads it ('_' between digits allowed).
std::optional<double> decimal(std::string_view text) {
  std::string digits(trim(text));
  std::erase(digits, '_');
  double number = 0;
  const char* start = digits.c_str() + (digits.starts_with('+') ? 1 : 0);
  const char* end = digits.c_str() + digits.size();
  const auto [rest, error] = std::from_chars(start, end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// The power of 1024 that a unit stands for: "", "k", "kb", or as format_bytes writes it, " kib".
std::optional<double> power_of(std::string_view unit) {
  constexpr std::string_view kUnits = "bkmgt";
  if (unit.empty()) return 0;
  const bool is_binary = unit.ends_with("ib");
  if (is_binary) {
    unit = trim(unit.substr(0, unit.size() - 2));
  } else if (unit.size() == 2 && unit[0] != 'b' && unit[1] == 'b') {
    unit.remove_suffix(1);
  }
  const size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
  if (power == std::string_view::npos || (is_binary && power == 0)) return std::nullopt;
  return static_cast<double>(power);
}

/// SANDBOX_CPU_COUNT wins over SANDBOX_CPUS even when it is invalid, as in the reference.
Result<std::optional<double>> cpus_of(const EnvironmentLookup& environment) {
  const auto count = environment("SANDBOX_CPU_COUNT");
  const std::string name = count ? "SANDBOX_CPU_COUNT" : "SANDBOX_CPUS";
  const auto value = count ? count : environment(name);
  if (!value) return std::optional<double>{};

  const auto number = decimal(*value);
  if (!number) return fail(ErrorCode::kInvalidArgument, name + " must be a positive number");
  if (*number <= 0) return fail(ErrorCode::kInvalidArgument, name + " must be greater than 0");
  if (count && std::floor(*number) != *number)
    return fail(ErrorCode::kInvalidArgument, name + " must be a whole number when mapped to cpu_period/cpu_quota");
  if (*number * kCpuPeriodMicroseconds < 1)
    return fail(ErrorCode::kInvalidArgument, name + " is too small to translate into cpu_quota");
  return std::optional(*number);
}

Result<std::optional<uint64_t>> memory_of(const EnvironmentLookup& environment) {
  for (const char* name : {"SANDBOX_MEM_LIMIT", "SANDBOX_MEMORY"}) {
    const auto value = text_of(environment, name);
    if (!value) continue;
    auto bytes = parse_memory(name, *value);
    if (!bytes) return fail(std::move(bytes.error()));
    return std::optional(*bytes);
  }
  return std::optional<uint64_t>{};
}

}  // namespace

EnvironmentLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::vector<std::string> process_environment_names() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

Result<uint64_t> parse_size(std::string_view name, std::string_view text, uint64_t smallest, uint64_t largest) {
  const std::string word = to_lower(trim(text));
  const size_t digits_end = std::min(word.find_first_not_of("0123456789."), word.size());
  const auto power = power_of(std::string_view(word).substr(digits_end));
  const auto value = decimal(word.substr(0, digits_end));
  if (!value || !power)
    return fail(ErrorCode::kInvalidArgument, std::string(name) + " is not a size: '" + std::string(text) + "'.",
                "Write for example 512m, 1.5g or a number of bytes.");
  const double bytes = *value * std::pow(1024.0, *power);
  if (bytes < static_cast<double>(smallest) || bytes > static_cast<double>(largest))
    return fail(ErrorCode::kInvalidArgument, std::string(name) + " must be from " + format_bytes(smallest) + " to " +
                                                 format_bytes(largest) + ", not '" + std::string(text) + "'.");
  return static_cast<uint64_t>(bytes);
}

Result<uint64_t> parse_memory(std::string_view name, std::string_view text) {
  return parse_size(name, text, uint64_t{16} << 20, uint64_t{1} << 50);
}

Result<RuntimeConfig> runtime_config_from(const EnvironmentLookup& environment) {
  RuntimeConfig config;
  config.network_mode = text_of(environment, "SANDBOX_NETWORK_MODE");
  config.cap_drop = list_of(environment, "SANDBOX_CAP_DROP");
  config.security_opt = list_of(environment, "SANDBOX_SECURITY_OPT");

  auto memory = memory_of(environment);
  if (!memory) return fail(std::move(memory.error()));
  config.memory_bytes = *memory;

  auto cpus = cpus_of(environment);
  if (!cpus) return fail(std::move(cpus.error()));
  config.cpus = *cpus;

  auto read_only = flag_of(environment, "SANDBOX_READ_ONLY");
  if (!read_only) return fail(std::move(read_only.error()));
  config.read_only = *read_only;

  auto privileged = flag_of(environment, "SANDBOX_PRIVILEGED");
  if (!privileged) return fail(std::move(privileged.error()));
  config.privileged = *privileged;
  return config;
}

std::vector<std::string> unknown_sandbox_variables(const std::vector<std::string>& names) {
  const std::vector<std::string> known(kSandboxVariables.begin(), kSandboxVariables.end());
  std::vector<std::string> lines;
  for (const auto& name : names) {
    if (!name.starts_with("SANDBOX_") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    lines.push_back(name + " means nothing to llm-sandbox and is ignored" +
                    (nearest.empty() ? "." : "; did you mean " + nearest + "?"));
  }
  return lines;
}

}  // namespace llm_sandbox
