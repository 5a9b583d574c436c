#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace llm_sandbox {

/// What of the host decides whether bwrap can work. Empty where the kernel has no such switch.
struct HostFacts {
  std::optional<std::string> userns_clone;         ///< kernel.unprivileged_userns_clone (Debian's kernels)
  std::optional<std::string> max_user_namespaces;  ///< user.max_user_namespaces
  std::optional<std::string> apparmor_restricts;   ///< kernel.apparmor_restrict_unprivileged_userns (Ubuntu)
  bool chrooted = false;                           ///< no user namespace can be made from a chroot
  bool proc_masked = false;                        ///< parts of /proc are covered, as engines do in their containers
  bool bwrap_setuid = false;

  static HostFacts look(const std::string& bwrap);
};

/// Why a sandbox could not be set up, from what bwrap or the launcher said on stderr, with the mend where one is known.
/// The code is kBackendUnavailable.
Error explain_failure(std::string_view stderr_text, const HostFacts& facts);

/// The oldest version with all the options we need (--disable-userns).
constexpr std::string_view kOldestBwrap = "0.8.0";

/// The version in "bubblewrap 0.8.0"; kBackendUnavailable if it is too old or something else was printed.
Result<std::string> accept_version(std::string_view version_output, const std::string& bwrap);

/// bwrap in the folders of a PATH-like list, then in /usr/bin and /bin; kBackendUnavailable if it is nowhere.
Result<std::string> find_bwrap(const std::string& path_list);

}  // namespace llm_sandbox
