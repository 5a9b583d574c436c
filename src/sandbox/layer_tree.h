#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/deadline.h"
#include "base/error.h"

namespace llm_sandbox {

/// What is done here with a folder that a program filled as it liked. Everything goes by descriptor and follows no
/// link; names, modes, owners and depth are the program's, and may change meanwhile. A place is an open folder and a
/// name in it.

struct TreeLimits {
  uint64_t bytes = 0;
  uint64_t files = 0;
};

struct TreeSize {
  uint64_t bytes = 0;  ///< of disk, so that a file with holes counts as what it takes
  uint64_t files = 0;  ///< all entries: folders and links, too
};

/// How large a folder is. kTooLarge, as soon as it is beyond a limit or nests deeper than any path can name;
/// kCancelled.
Result<TreeSize> measure_tree(int parent, const std::string& name, const TreeLimits& limits, std::stop_token stop);

/// The same, and makes it ours: our owner, readable by all, writable by us alone, nothing set-user-id.
Result<TreeSize> take_over_tree(int parent, const std::string& name, const TreeLimits& limits, std::stop_token stop);

/// How long removing may take: a minute, and half a second more once stop is requested. What remains is for the next
/// who sweeps.
class Patience {
 public:
  explicit Patience(std::stop_token stop) : stop_(std::move(stop)) {}
  bool ended();

 private:
  std::stop_token stop_;
  Deadline deadline_ = Deadline::after(std::chrono::minutes(1));
  bool hurried_ = false;
};

/// Removes a folder with all in it, to any depth. False if something remains.
bool remove_tree(int parent, const std::string& name, Patience& patience);

/// The entries of an open folder, "." and ".." left out.
class FolderStream {
 public:
  enum class Access { kRead, kWrite };
  /// Follows no link. A folder of ours that keeps us out is changed to let us in. Nothing on failure (errno).
  static std::optional<FolderStream> open(int parent, const char* name, Access access);

  int fd() const { return dirfd(stream_.get()); }
  /// Valid until the next call; null at the end, or where reading failed (then error() is not 0).
  const char* next();
  int error() const { return error_; }

 private:
  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  explicit FolderStream(DIR* stream) : stream_(stream) {}

  std::unique_ptr<DIR, Close> stream_;
  int error_ = 0;
};

}  // namespace llm_sandbox
