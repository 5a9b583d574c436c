#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

/// A run of user ids, both ends included.
struct IdRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

/// An unprivileged id of the host that no other sandbox has while this lives.
class HostId {
 public:
  HostId(uid_t id, UniqueFd lock) : id_(id), lock_(std::move(lock)) {}
  uid_t id() const { return id_; }

 private:
  uid_t id_;
  UniqueFd lock_;  ///< flock(2): the kernel frees the id when the server dies, however it dies
};

/// Hands out host ids to the sandboxes of a server that runs as root. Other servers use the same folder, so ids differ
/// between them too. Const, so safe from any thread.
class HostIds {
 public:
  /// `folder` holds one lock file for each id; it is made if missing.
  HostIds(std::string folder, std::vector<IdRange> ranges) : folder_(std::move(folder)), ranges_(std::move(ranges)) {}
  /// Those of this host: /run/llm-sandbox/ids and ids_for(/proc/self/uid_map, gid_map).
  static HostIds of_host();

  /// kBackendUnavailable when no id is free or the folder cannot be used.
  Result<HostId> claim() const;

 private:
  std::string folder_;
  std::vector<IdRange> ranges_;
};

/// The ids to use under these two maps (user_namespaces(7)): those that systemd hands out to nobody
/// (systemd.io/UIDS-GIDS), as far as both maps have them; in a container with a small map the few that are left.
std::vector<IdRange> ids_for(std::string_view uid_map, std::string_view gid_map);

}  // namespace llm_sandbox
