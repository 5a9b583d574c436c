#include "backends/bubblewrap/failures.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backends/bubblewrap/host_files.h"
#include "base/process.h"
#include "base/text.h"

namespace llm_sandbox {
namespace {

constexpr std::string_view kInstall = "Install it: sudo apt install bubblewrap";

std::optional<std::string> sysctl(const std::string& name) {
  const auto value = read_host_file("/proc/sys/" + name);
  if (!value) return std::nullopt;
  return std::string(trim(*value));
}

/// The mount points of /proc/self/mountinfo. In a chroot none of them is "/"; in a container some lie below /proc.
std::vector<std::string> mount_points() {
  std::vector<std::string> points;
  for (const auto& line : split(read_host_file("/proc/self/mountinfo").value_or(""), '\n'))
    if (const auto parts = words(line); parts.size() > 4) points.push_back(parts[4]);
  return points;
}

bool says(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Error unavailable(std::string sentence, std::string hint) {
  return Error{ErrorCode::kBackendUnavailable, std::move(sentence), std::move(hint)};
}

Error no_user_namespace(const std::string& said, const HostFacts& facts) {
  const std::string cannot = "bubblewrap cannot make a user namespace: ";
  if (facts.userns_clone == "0")
    return unavailable(cannot + "kernel.unprivileged_userns_clone is 0.",
                       "Allow it: sudo sysctl -w kernel.unprivileged_userns_clone=1");
  if (facts.max_user_namespaces == "0")
    return unavailable(cannot + "user.max_user_namespaces is 0.",
                       "Allow them: sudo sysctl -w user.max_user_namespaces=10000");
  if (facts.apparmor_restricts == "1")
    return unavailable(
        cannot + "AppArmor forbids it (kernel.apparmor_restrict_unprivileged_userns is 1).",
        "Give bwrap an AppArmor profile with 'userns,' (Ubuntu: sudo apt install apparmor-profiles, then "
        "copy /usr/share/apparmor/extra-profiles/bwrap-userns-restrict to /etc/apparmor.d and reload), or "
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
  if (facts.chrooted)
    return unavailable(cannot + "the server runs in a chroot, where the kernel forbids it.",
                       "Run it outside, or enter the new root with pivot_root (systemd-nspawn, a container).");
  if (says(said, "ENOSPC") || says(said, "No space left"))
    return unavailable(cannot + "the limit on their number or nesting is reached (" + said + ").",
                       "Raise it: sudo sysctl -w user.max_user_namespaces=10000");
  return unavailable(cannot + said,
                     "In a container, allow user namespaces in it (Docker: --security-opt seccomp=unconfined "
                     "--security-opt systempaths=unconfined), or run the server outside.");
}

std::vector<unsigned long> version_numbers(std::string_view text) {
  std::vector<unsigned long> numbers;
  for (const auto& part : split(text, '.')) numbers.push_back(to_number(part).value_or(0));
  return numbers;
}

}  // namespace

HostFacts HostFacts::look(const std::string& bwrap) {
  HostFacts facts;
  facts.userns_clone = sysctl("kernel/unprivileged_userns_clone");
  facts.max_user_namespaces = sysctl("user/max_user_namespaces");
  facts.apparmor_restricts = sysctl("kernel/apparmor_restrict_unprivileged_userns");
  const auto points = mount_points();
  facts.chrooted = !points.empty() && std::find(points.begin(), points.end(), "/") == points.end();
  facts.proc_masked =
      std::any_of(points.begin(), points.end(), [](const std::string& point) { return point.starts_with("/proc/"); });
  struct stat info {};
  facts.bwrap_setuid = stat(bwrap.c_str(), &info) == 0 && (info.st_mode & S_ISUID) != 0;
  return facts;
}

Error explain_failure(std::string_view stderr_text, const HostFacts& facts) {
  const std::string said = sanitize_utf8(trim(stderr_text));
  if (facts.bwrap_setuid)
    return unavailable(
        "bubblewrap is installed setuid root, in which mode it cannot forbid nested user namespaces: " + said,
        "Remove the bit (sudo chmod u-s on bwrap) and allow user namespaces.");
  if (says(said, "Can't mount proc"))
    return unavailable("bubblewrap may not mount a /proc of its own: " + said,
                       facts.proc_masked
                           ? "Parts of this container's /proc are covered, which the kernel takes for a ban. Start the "
                             "container with --security-opt systempaths=unconfined, or run the server outside."
                           : "Run the server where /proc is fully visible.");
  static constexpr std::array<std::string_view, 7> kNamespaceTroubles = {
      "new namespace",   "setting up uid map", "setting up gid map",    "RTM_NEWADDR",
      "user namespaces", "max_user_names",     "Failed to make / slave"};
  if (std::any_of(kNamespaceTroubles.begin(), kNamespaceTroubles.end(),
                  [&](std::string_view trouble) { return says(said, trouble); }))
    return no_user_namespace(said, facts);
  if (said.empty()) return unavailable("The sandbox ended before its agent was ready, and said nothing.", "");
  return unavailable("The sandbox could not be set up: " + said, "");
}

Result<std::string> accept_version(std::string_view version_output, const std::string& bwrap) {
  constexpr std::string_view kName = "bubblewrap ";
  const std::string_view line = trim(version_output);
  if (!line.starts_with(kName))
    return fail(ErrorCode::kBackendUnavailable, bwrap + " --version did not say that it is bubblewrap.",
                std::string(kInstall));
  const std::string version(line.substr(kName.size()));
  if (version_numbers(version) < version_numbers(kOldestBwrap))
    return fail(ErrorCode::kBackendUnavailable,
                "bubblewrap " + sanitize_utf8(version) + " (" + bwrap + ") is too old: " + std::string(kOldestBwrap) +
                    " or newer is needed.",
                "Install a newer one (Debian 12, Ubuntu 24.04 or later have it), or build it from "
                "https://github.com/containers/bubblewrap");
  return version;
}

Result<std::string> find_bwrap(const std::string& path_list) {
  const std::string found = find_in_path("bwrap", path_list + ":/usr/bin:/bin");
  if (found.empty())
    return fail(ErrorCode::kBackendUnavailable, "bubblewrap is not installed: there is no bwrap in PATH or /usr/bin.",
                std::string(kInstall));
  return found;
}

}  // namespace llm_sandbox
