#include "backends/bubblewrap/seccomp.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/bubblewrap/host_files.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

namespace embedded {
std::string_view seccomp_default();
}

namespace {

using nlohmann::json;

struct Condition {
  unsigned argument = 0;
  std::vector<MaskedValue> any_of;
};

/// Numbers that all architectures share begin here (syscalls(2); alpha and MIPS, which add an offset, are not built
/// for).
constexpr int kFirstSharedNumber = 424;

struct Call {
  std::string name;
  std::optional<int> number;  ///< for a libseccomp that does not know the name
};

/// Conditions of one list entry; none: always.
struct Rule {
  std::vector<Call> calls;
  int error_number = EPERM;
  std::optional<Condition> when;
};

/// A malformed list. Only thrown and caught in this file, as the JSON library throws as well.
struct BadList {
  std::string what;
};

uint32_t value_of(const json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= 0xffff'ffffU) return value.get<uint32_t>();
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.starts_with("0x")) {
    const auto [stop, error] = std::from_chars(text.data() + 2, end, number, 16);
    if (error == std::errc{} && stop == end) return number;
  }
  throw BadList{value.dump() + " is not a 32-bit number (a number or \"0x…\")"};
}

std::vector<uint32_t> values_of(const json& list) {
  std::vector<uint32_t> values;
  for (const auto& value : list) values.push_back(value_of(value));
  return values;
}

Condition condition_of(const json& when) {
  Condition condition;
  condition.argument = when.at("argument").get<unsigned>();
  if (condition.argument > 5) throw BadList{"system calls have arguments 0 to 5"};
  if (when.contains("one_of")) {
    for (const uint32_t value : values_of(when["one_of"])) condition.any_of.push_back({0xffff'ffffU, value});
  } else if (when.contains("none_of")) {
    condition.any_of = everything_but(values_of(when["none_of"]));
  } else {
    const uint32_t bits = value_of(when.at("any_bit_of"));
    for (uint32_t bit = 1; bit != 0; bit <<= 1)
      if ((bits & bit) != 0) condition.any_of.push_back({bit, bit});
  }
  return condition;
}

Call call_of(const json& entry) {
  if (entry.is_string()) return {entry.get<std::string>(), std::nullopt};
  Call call{entry.at("name").get<std::string>(), entry.at("number").get<int>()};
  if (*call.number < kFirstSharedNumber)
    throw BadList{"the number of '" + call.name + "' is not the same on all architectures; only those from " +
                  std::to_string(kFirstSharedNumber) + " on are"};
  return call;
}

int error_number_of(const std::string& action) {
  if (action == "EPERM") return EPERM;
  if (action == "ENOSYS") return ENOSYS;
  if (action == "EAFNOSUPPORT") return EAFNOSUPPORT;
  if (action == "EPROTONOSUPPORT") return EPROTONOSUPPORT;
  throw BadList{"unknown action '" + action + "' (EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT)"};
}

Rule rule_of(const json& entry) {
  Rule rule;
  for (const auto& call : entry.at("calls")) rule.calls.push_back(call_of(call));
  rule.error_number = error_number_of(entry.at("action").get<std::string>());
  if (entry.contains("when")) rule.when = condition_of(entry["when"]);
  return rule;
}

struct FreeContext {
  void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, FreeContext>;

void check(int result, const std::string& what) {
  if (result < 0) throw BadList{what + ": libseccomp says error " + std::to_string(-result)};
}

Context make_context() {
  Context context(seccomp_init(SCMP_ACT_ALLOW));
  if (!context) throw BadList{"libseccomp could not start"};
  check(seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "foreign architectures");
  // A tree instead of a list; libseccomp before 2.5 has only the list, which works as well.
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  return context;
}

/// False when this libseccomp does not know the call, and the list has no number for it.
bool add_rule(scmp_filter_ctx context, const Call& call, const Rule& rule) {
  const std::string& name = call.name;
  int number = seccomp_syscall_resolve_name(name.c_str());
  if (number == __NR_SCMP_ERROR && !call.number) return false;
  if (number == __NR_SCMP_ERROR) number = *call.number;
  if (number < 0) return true;  // exists on other architectures only, whose calls are refused as a whole
  const uint32_t action = SCMP_ACT_ERRNO(static_cast<uint32_t>(rule.error_number));
  if (!rule.when) {
    check(seccomp_rule_add_array(context, action, number, 0, nullptr), name);
    return true;
  }
  for (const auto& [mask, value] : rule.when->any_of) {
    const scmp_arg_cmp compare{rule.when->argument, SCMP_CMP_MASKED_EQ, mask, value};
    check(seccomp_rule_add_array(context, action, number, 1, &compare), name);
  }
  return true;
}

std::string export_program(scmp_filter_ctx context) {
  const UniqueFd file(memfd_create("seccomp", MFD_CLOEXEC));
  if (!file) throw BadList{"no memory file"};
  check(seccomp_export_bpf(context, file.get()), "export");
  std::string program(static_cast<size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  if (pread(file.get(), program.data(), program.size(), 0) != static_cast<ssize_t>(program.size()))
    throw BadList{"the program could not be read back"};
  return program;
}

bool applies(const json& group, MemoryGuard guard) {
  if (!group.contains("only")) return true;
  if (group["only"] != "without-memory-group")
    throw BadList{"\"only\" is " + group["only"].dump() + ", and \"without-memory-group\" is all that it may be"};
  return guard == MemoryGuard::kWatch;
}

SeccompFilter build(const json& list, MemoryGuard guard) {
  SeccompFilter filter;
  std::set<std::string> restricted;
  const Context context = make_context();
  for (const auto& group : list.at("groups")) {
    if (!applies(group, guard)) continue;
    for (const auto& entry : group.at("rules")) {
      const Rule rule = rule_of(entry);
      for (const auto& call : rule.calls) {
        if (add_rule(context.get(), call, rule))
          restricted.insert(call.name);
        else
          filter.unknown_names.push_back(call.name);
      }
    }
  }
  filter.system_calls = restricted.size();
  filter.program = export_program(context.get());
  return filter;
}

/// All numbers that begin with `prefix` in their upper `depth` bits, as few blocks as possible.
void add_blocks(uint32_t prefix, unsigned depth, const std::vector<uint32_t>& excepted,
                std::vector<MaskedValue>& blocks) {
  const uint32_t mask = depth == 0 ? 0 : ~uint32_t{0} << (32 - depth);
  const bool whole =
      std::none_of(excepted.begin(), excepted.end(), [&](uint32_t value) { return (value & mask) == prefix; });
  if (whole) return blocks.push_back({mask, prefix});
  if (depth == 32) return;
  add_blocks(prefix, depth + 1, excepted, blocks);
  add_blocks(prefix | (uint32_t{1} << (31 - depth)), depth + 1, excepted, blocks);
}

}  // namespace

std::vector<MaskedValue> everything_but(const std::vector<uint32_t>& excepted) {
  std::vector<MaskedValue> blocks;
  add_blocks(0, 0, excepted, blocks);
  return blocks;
}

Result<SeccompFilter> build_seccomp_filter(std::string_view json_text, MemoryGuard guard) {
  const std::string what = "The list of refused system calls cannot be used: ";
  try {
    return build(json::parse(json_text), guard);
  } catch (const BadList& bad) {
    return fail(ErrorCode::kInvalidArgument, what + bad.what + ".");
  } catch (const json::exception& bad) {
    return fail(ErrorCode::kInvalidArgument, what + bad.what() + ".");
  }
}

std::string_view default_seccomp_list() { return embedded::seccomp_default(); }

}  // namespace llm_sandbox
