#include "sandbox/layer_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/unique_fd.h"

namespace llm_sandbox {
namespace {

/// Several times what package managers nest; one descriptor is open for each level.
constexpr size_t kMaxDepth = 128;
constexpr uint64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's own

/// Whether an entry that was there a moment ago has been removed or replaced.
bool is_change(int error_number) { return error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP; }

/// A file with several names counts once, in parts: they all lie in the folder, as no other could be linked into it.
uint64_t disk_bytes(const struct stat& info) {
  const uint64_t bytes = static_cast<uint64_t>(info.st_blocks) * kBlockBytes;
  return S_ISDIR(info.st_mode) || info.st_nlink < 2 ? bytes : bytes / info.st_nlink;
}

tl::unexpected<Error> too_large(const std::string& what) { return fail(ErrorCode::kTooLarge, what); }

/// The walk under both measure_tree and take_over_tree; `visit` gets each entry before it is entered and returns an
/// errno.
template <typename Visit>
class Walk {
 public:
  Walk(const TreeLimits& limits, std::stop_token stop, Visit visit)
      : limits_(limits), stop_(std::move(stop)), visit_(std::move(visit)) {}

  Result<TreeSize> run(int parent, const std::string& name) {
    if (auto entered = look_at(parent, name.c_str()); !entered) return fail(std::move(entered.error()));
    if (way_.empty()) return fail(ErrorCode::kIo, name + " is no folder any more.");
    while (!way_.empty()) {
      if (stop_.stop_requested()) return fail(ErrorCode::kCancelled, "Measuring was stopped.");
      FolderStream& folder = way_.back();
      const char* entry = folder.next();
      if (entry == nullptr) {
        if (folder.error() != 0 && !is_change(folder.error())) return fail_errno("cannot be read", folder.error());
        way_.pop_back();
        continue;
      }
      if (auto looked = look_at(folder.fd(), entry); !looked) return fail(std::move(looked.error()));
    }
    return size_;
  }

 private:
  Result<void> look_at(int parent, const char* name) {
    struct stat info {};
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return tolerate(errno);
    if (const int error_number = visit_(parent, name, info); error_number != 0) return tolerate(error_number);
    size_.bytes += disk_bytes(info);
    size_.files += 1;
    if (size_.bytes > limits_.bytes) return too_large("it takes more than " + format_bytes(limits_.bytes) + ".");
    if (size_.files > limits_.files)
      return too_large("it has more than " + std::to_string(limits_.files) + " files and folders.");
    if (!S_ISDIR(info.st_mode)) return {};
    if (way_.size() > kMaxDepth)
      return too_large("its folders are nested more than " + std::to_string(kMaxDepth) + " deep.");
    auto folder = FolderStream::open(parent, name, FolderStream::Access::kRead);
    if (!folder) return tolerate(errno);
    way_.push_back(std::move(*folder));
    return {};
  }

  static Result<void> tolerate(int error_number) {
    if (is_change(error_number)) return {};
    return fail_errno("cannot be read", error_number);
  }

  TreeLimits limits_;
  std::stop_token stop_;
  Visit visit_;
  TreeSize size_;
  std::vector<FolderStream> way_;  ///< from the top to where the walk is
};

/// Removes a tree without going down in it: each folder's folders are moved up to the top, until there are none. So
/// neither depth nor the length of a path matters, and three descriptors are enough.
class Removal {
 public:
  Removal(FolderStream top, Patience& patience) : top_(std::move(top)), patience_(patience) {}

  /// One pass over the top folder; whether anything was removed or moved.
  bool pass() {
    bool progress = false;
    for (const char* entry = top_.next(); entry != nullptr && !patience_.ended(); entry = top_.next())
      progress = remove(entry) || progress;
    return progress;
  }

 private:
  bool remove(const char* entry) {
    if (unlinkat(top_.fd(), entry, 0) == 0) return true;
    const bool progress = empty(entry);
    return unlinkat(top_.fd(), entry, AT_REMOVEDIR) == 0 || progress;
  }

  bool empty(const char* name) {
    auto folder = FolderStream::open(top_.fd(), name, FolderStream::Access::kWrite);
    if (!folder) return false;
    bool progress = false;
    for (const char* entry = folder->next(); entry != nullptr && !patience_.ended(); entry = folder->next())
      progress = unlinkat(folder->fd(), entry, 0) == 0 || move_up(folder->fd(), entry) || progress;
    return progress;
  }

  bool move_up(int folder, const char* name) {
    bool opened = false;
    while (true) {
      if (renameat(folder, name, top_.fd(), std::to_string(number_).c_str()) == 0) return true;
      if (errno == EACCES && !opened) {  // an ordinary user's folder must itself be writable to be moved
        opened = fchmodat(folder, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0;
        if (!opened) return false;
      } else if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
        ++number_;
      } else {
        return false;
      }
    }
  }

  FolderStream top_;
  Patience& patience_;
  uint64_t number_ = 0;  ///< a name in the top folder that is free, or soon found to be taken
};

}  // namespace

std::optional<FolderStream> FolderStream::open(int parent, const char* name, Access access) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(openat(parent, name, kFlags));
  if (!fd && errno == EACCES && fchmodat(parent, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0)
    fd.reset(openat(parent, name, kFlags));
  if (!fd) return std::nullopt;
  const mode_t needed = S_IRUSR | S_IXUSR | (access == Access::kWrite ? S_IWUSR : 0U);
  struct stat info {};
  if (fstat(fd.get(), &info) == 0 && (info.st_mode & needed) != needed) fchmod(fd.get(), S_IRWXU);
  DIR* stream = fdopendir(fd.get());
  if (stream == nullptr) return std::nullopt;
  static_cast<void>(fd.release());
  return FolderStream(stream);
}

const char* FolderStream::next() {
  while (true) {
    errno = 0;
    const dirent* entry = readdir(stream_.get());
    error_ = errno;
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
}

Result<TreeSize> measure_tree(int parent, const std::string& name, const TreeLimits& limits, std::stop_token stop) {
  return Walk(limits, stop, [](int, const char*, const struct stat&) { return 0; }).run(parent, name);
}

Result<TreeSize> take_over_tree(int parent, const std::string& name, const TreeLimits& limits, std::stop_token stop) {
  const auto take_over = [user = geteuid(), group = getegid()](int folder, const char* entry, const struct stat& info) {
    // Neither pipes nor devices: a pipe could be written to through a read-only mount, from one call to another.
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode))
      return unlinkat(folder, entry, 0) == 0 ? 0 : errno;
    const bool foreign = info.st_uid != user || (user == 0 && info.st_gid != group);
    if (foreign && fchownat(folder, entry, user, group, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    if (S_ISLNK(info.st_mode)) return 0;
    const mode_t mode = S_ISDIR(info.st_mode) || (info.st_mode & 0111U) != 0 ? 0755 : 0644;
    if ((info.st_mode & 07777U) == mode) return 0;
    return fchmodat(folder, entry, mode, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
  };
  return Walk(limits, stop, take_over).run(parent, name);
}

bool Patience::ended() {
  if (!hurried_ && stop_.stop_requested()) {
    hurried_ = true;
    deadline_ = deadline_.earlier(Deadline::after(std::chrono::milliseconds(500)));
  }
  return deadline_.passed();
}

bool remove_tree(int parent, const std::string& name, Patience& patience) {
  while (!patience.ended()) {
    auto top = FolderStream::open(parent, name.c_str(), FolderStream::Access::kWrite);
    if (!top) return errno == ENOENT || unlinkat(parent, name.c_str(), 0) == 0;
    const bool progress = Removal(std::move(*top), patience).pass();
    if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return true;
    if (!progress) return false;
  }
  return false;
}

}  // namespace llm_sandbox
