#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

/// What every sandbox shows of this host's base system, as found here.
struct HostLayout {
  /// A folder at the root: on a merged-/usr system a symbolic link into /usr, elsewhere a real folder.
  struct Place {
    std::string path;         ///< "/lib64"
    std::string link_target;  ///< "usr/lib64"; empty: a real folder
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> system;                  ///< /usr, /bin, /sbin, /lib*
  std::vector<std::string> etc;               ///< paths below /etc that exist and are harmless
  std::vector<SandboxFile> etc_files;         ///< small ones of them, as they were: a copy costs less than a mount
  std::vector<std::string> etc_with_network;  ///< the same, only where the sandbox has a network

  /// Looks below `root` ("" for the host itself); the list of /etc entries is config/bubblewrap/etc.json.
  static HostLayout look(const std::string& root = "");
};

/// Whose eyes decide what can be shown.
enum class Viewer {
  kSelf,     ///< this process' own user
  kAnybody,  ///< an unprivileged id that owns nothing: permission bits of "others"
};

/// Whether the viewer can list and run what lies at `path`: every folder on the way can be entered, a folder listed, a
/// file read (and run, if anybody may run it).
bool can_reach(const std::string& path, Viewer viewer);

/// The runtime paths to mount: those below /usr are dropped, as they are visible anyway. kPolicy for a path that would
/// show more than a runtime: the root, whole homes (`home` is the server user's), the host's /etc, /proc, /sys, /dev,
/// /run, /var, or that stands in the way of the sandbox's own places. Symbolic links are judged by where they lead.
Result<std::vector<std::string>> runtime_mounts(const std::vector<std::string>& runtime_paths, const std::string& home);

}  // namespace llm_sandbox
