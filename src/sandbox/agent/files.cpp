#include "sandbox/agent/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace llm_sandbox::agent {
namespace {

constexpr mode_t kPermissions = 0777;
constexpr mode_t kPermissionsAndSticky = 01777;
constexpr int kMostCreateAttempts = 4;

EntryType type_of(mode_t mode) {
  if (S_ISREG(mode)) return EntryType::kFile;
  if (S_ISDIR(mode)) return EntryType::kFolder;
  return S_ISLNK(mode) ? EntryType::kSymlink : EntryType::kOther;
}

/// Takes away what is no folder. A missing one is as good.
bool clear_place(const Place& place) {
  return unlinkat(place.folder.get(), place.name.c_str(), 0) == 0 || errno == ENOENT;
}

EntryMessage entry_of(const struct stat& info) {
  EntryMessage entry;
  entry.type = type_of(info.st_mode);
  entry.mode = info.st_mode & 07777;
  entry.size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  entry.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return entry;
}

class FileDownload : public Download {
 public:
  FileDownload(uint32_t id, UniqueFd file, EntryMessage entry, uint64_t max_bytes)
      : id_(id), file_(std::move(file)), entry_(std::move(entry)), left_(max_bytes) {}

  bool advance(Outbox& outbox) override {
    if (!std::exchange(announced_, true)) outbox.push_message(FrameType::kEntry, id_, entry_);
    static std::array<char, kMaxDataBytes> buffer;
    const ssize_t count = read(file_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return true;
    if (count < 0) return failed(outbox, errno, "read " + entry_.path);
    if (count == 0) {
      outbox.push(FrameType::kDone, id_);
      return false;
    }
    // It may have grown since its size was looked at.
    if (static_cast<uint64_t>(count) > left_) return failed(outbox, EFBIG, entry_.path + " is larger than asked for");
    left_ -= static_cast<uint64_t>(count);
    outbox.push(FrameType::kData, id_, {buffer.data(), static_cast<size_t>(count)});
    return true;
  }

 private:
  bool failed(Outbox& outbox, int error_number, std::string what) const {
    outbox.push_error(id_, {error_number, std::move(what)});
    return false;
  }

  uint32_t id_;
  UniqueFd file_;
  EntryMessage entry_;
  bool announced_ = false;
  uint64_t left_;
};

}  // namespace

Outcome<EntryMessage> describe(int folder, const std::string& name) {
  struct stat info {};
  if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return refuse(errno, "look at " + name);
  EntryMessage entry = entry_of(info);
  if (entry.type == EntryType::kSymlink) {
    std::array<char, PATH_MAX> target;
    const ssize_t length = readlinkat(folder, name.c_str(), target.data(), target.size());
    if (length < 0) return refuse(errno, "read the link " + name);
    entry.target.assign(target.data(), static_cast<size_t>(length));
  }
  return entry;
}

Outcome<void> make_folder(const PathMessage& message) {
  if (message.path.empty()) {
    const auto root = open_folder(message, Missing::kIsAnError);
    return root ? Outcome<void>() : tl::unexpected(root.error());
  }
  const auto place = open_parent(message, Missing::kIsMade);
  if (!place) return tl::unexpected(place.error());
  const int folder = place->folder.get();
  const char* name = place->name.c_str();
  const mode_t mode = message.mode & kPermissionsAndSticky;
  if (mkdirat(folder, name, mode) == 0) {
    // Past the umask; a link that took its place meanwhile is not followed.
    const UniqueFd made(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (made) fchmod(made.get(), mode);
    return {};
  }
  if (errno != EEXIST) return refuse(errno, "make the folder " + message.path);
  const auto there = describe(folder, place->name);
  if (there && there->type == EntryType::kFolder) return {};
  return refuse(there && there->type == EntryType::kSymlink ? ELOOP : ENOTDIR, "make the folder " + message.path);
}

Outcome<void> make_symlink(const PathMessage& message) {
  if (message.target.empty() || message.target.find('\0') != std::string::npos)
    return refuse(EINVAL, "make the link " + message.path + " without a proper target");
  const auto place = open_parent(message, Missing::kIsMade);
  if (!place) return tl::unexpected(place.error());
  if (!clear_place(*place)) return refuse(errno, "replace " + message.path);
  if (symlinkat(message.target.c_str(), place->folder.get(), place->name.c_str()) != 0)
    return refuse(errno, "make the link " + message.path);
  return {};
}

Outcome<Upload> Upload::begin(uint32_t id, const PathMessage& message) {
  auto place = open_parent(message, Missing::kIsMade);
  if (!place) return tl::unexpected(std::move(place.error()));
  // A program that keeps putting something in its place is not waited for.
  for (int attempt = 0; attempt < kMostCreateAttempts; ++attempt) {
    if (!clear_place(*place)) return refuse(errno, "replace " + message.path);
    UniqueFd file(openat(place->folder.get(), place->name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
    if (file) return Upload(id, std::move(*place), std::move(file), message.mode & kPermissions);
    if (errno != EEXIST) return refuse(errno, "make " + message.path);
  }
  return refuse(EEXIST, "make " + message.path);
}

Upload::Upload(uint32_t id, Place place, UniqueFd file, mode_t mode)
    : id_(id), place_(std::move(place)), file_(std::move(file)), mode_(mode) {}

Upload::~Upload() {
  if (file_) clear_place(place_);
}

Outcome<void> Upload::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(errno, "write " + place_.name);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Outcome<void> Upload::finish() {
  if (fchmod(file_.get(), mode_) != 0) return refuse(errno, "set the mode of " + place_.name);
  if (close(file_.release()) != 0) return refuse(errno, "write " + place_.name);  // network file systems tell it here
  return {};
}

Outcome<std::unique_ptr<Download>> begin_get(uint32_t id, const PathMessage& message) {
  const auto place = open_parent(message, Missing::kIsAnError);
  if (!place) return tl::unexpected(place.error());
  // Looked at before it is opened: to open a FIFO or a device would already do something to it.
  struct stat info {};
  if (fstatat(place->folder.get(), place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return refuse(errno, "open " + message.path);
  if (S_ISLNK(info.st_mode)) return refuse(ELOOP, message.path + " is a symbolic link");
  if (!S_ISREG(info.st_mode)) return refuse(EINVAL, message.path + " is not a regular file");
  UniqueFd file(
      openat(place->folder.get(), place->name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return refuse(errno, "open " + message.path);
  if (fstat(file.get(), &info) != 0) return refuse(errno, "look at " + message.path);
  if (!S_ISREG(info.st_mode)) return refuse(EINVAL, message.path + " is not a regular file");
  if (static_cast<uint64_t>(info.st_size) > message.max_bytes)
    return refuse(EFBIG, message.path + " has " + std::to_string(info.st_size) + " bytes");
  EntryMessage entry = entry_of(info);
  entry.path = message.path;
  return std::make_unique<FileDownload>(id, std::move(file), std::move(entry), message.max_bytes);
}

}  // namespace llm_sandbox::agent
