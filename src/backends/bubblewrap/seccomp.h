#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace llm_sandbox {

/// A condition on the low 32 bits of an argument: (argument & mask) == value.
struct MaskedValue {
  uint32_t mask = 0;
  uint32_t value = 0;
  friend bool operator==(const MaskedValue&, const MaskedValue&) = default;
};

/// The smallest list of masked values that together match every 32-bit number but those of `excepted`. A filter that
/// allows by default can only refuse what matches, and cannot say "none of"; this says it.
std::vector<MaskedValue> everything_but(const std::vector<uint32_t>& excepted);

/// A system call filter as the kernel takes it (an array of sock_filter, seccomp(2)).
struct SeccompFilter {
  std::string program;                     ///< bytes of the BPF program
  size_t system_calls = 0;                 ///< how many system calls it restricts
  std::vector<std::string> unknown_names;  ///< neither known to this libseccomp nor listed with a number; allowed
};

/// What limits the memory of the sandbox. Groups of the list may apply to the second case only.
enum class MemoryGuard {
  kControlGroup,
  kWatch,  ///< rlimits and the agent's watch, which see less
};

/// Builds the filter that a deny list (the form of config/seccomp/default.json) describes. What is not listed is
/// allowed; calls of foreign architectures, x32 included, get ENOSYS. kInvalidArgument names the bad place of the list.
Result<SeccompFilter> build_seccomp_filter(std::string_view json_text, MemoryGuard guard = MemoryGuard::kControlGroup);

/// config/seccomp/default.json, embedded.
std::string_view default_seccomp_list();

}  // namespace llm_sandbox
