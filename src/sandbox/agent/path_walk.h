#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "sandbox/agent/messages.h"
#include "sandbox/agent/outcome.h"

namespace llm_sandbox::agent {

/// The components of a path below a root. EINVAL on an absolute path, an empty component, ".", ".." or a zero byte;
/// ENAMETOOLONG beyond PATH_MAX.
Outcome<std::vector<std::string>> components_of(const std::string& path);

/// A folder that was reached, and the last name, which has not been looked at.
struct Place {
  UniqueFd folder;  ///< O_PATH
  std::string name;
};

enum class Missing { kIsAnError, kIsMade };

/// Opens (O_PATH) the folder `path` below `root`, one component after the other: the root's own links are followed, no
/// other ever is. A link on the way is ELOOP, anything else that is no folder ENOTDIR.
Outcome<UniqueFd> open_folder(const PathMessage& message, Missing missing);

/// The same for the folder that holds the last component of message.path, which may not be empty.
Outcome<Place> open_parent(const PathMessage& message, Missing missing);

}  // namespace llm_sandbox::agent
