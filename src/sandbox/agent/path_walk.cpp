#include "sandbox/agent/path_walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace llm_sandbox::agent {
namespace {

constexpr mode_t kFolderMode = 0755;

Outcome<UniqueFd> open_root(const PathMessage& message) {
  if (message.root.empty() || message.root[0] != '/' || message.root.find('\0') != std::string::npos)
    return refuse(EINVAL, "the root " + message.root + " is no absolute path");
  UniqueFd folder(open(message.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return refuse(errno, "open the folder " + message.root);
  return folder;
}

bool is_link(int folder, const std::string& name) {
  struct stat info {};
  return fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

Outcome<UniqueFd> step(int folder, const std::string& name, const PathMessage& message, Missing missing) {
  if (missing == Missing::kIsMade && mkdirat(folder, name.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return refuse(errno, "make the folder " + name + " of " + message.path);
  UniqueFd next(openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (next) return next;
  const int error_number = errno == ENOTDIR && is_link(folder, name) ? ELOOP : errno;
  return refuse(error_number, "open the folder " + name + " of " + message.path);
}

Outcome<UniqueFd> walk(const PathMessage& message, const std::vector<std::string>& names, Missing missing) {
  auto folder = open_root(message);
  for (size_t i = 0; folder && i < names.size(); ++i) folder = step(folder->get(), names[i], message, missing);
  return folder;
}

}  // namespace

Outcome<std::vector<std::string>> components_of(const std::string& path) {
  if (path.size() >= PATH_MAX) return refuse(ENAMETOOLONG, "a path of " + std::to_string(path.size()) + " bytes");
  if (path.find('\0') != std::string::npos) return refuse(EINVAL, "a path with a zero byte");
  std::vector<std::string> names;
  if (path.empty()) return names;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    names.push_back(path.substr(start, end - start));
    start = end + 1;
    const std::string& name = names.back();
    if (name.empty() || name == "." || name == "..")
      return refuse(EINVAL, "the path " + path + " does not lie plainly below its root");
  }
  return names;
}

Outcome<UniqueFd> open_folder(const PathMessage& message, Missing missing) {
  const auto names = components_of(message.path);
  if (!names) return tl::unexpected(names.error());
  return walk(message, *names, missing);
}

Outcome<Place> open_parent(const PathMessage& message, Missing missing) {
  auto names = components_of(message.path);
  if (!names) return tl::unexpected(std::move(names.error()));
  if (names->empty()) return refuse(EINVAL, "a file without a name in " + message.root);
  std::string last = std::move(names->back());
  names->pop_back();
  auto folder = walk(message, *names, missing);
  if (!folder) return tl::unexpected(std::move(folder.error()));
  return Place{std::move(*folder), std::move(last)};
}

}  // namespace llm_sandbox::agent
