#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/agent/files.h"

namespace llm_sandbox::agent {
namespace {

constexpr size_t kMostOpenFolders = 64;        ///< each level holds a descriptor
constexpr size_t kLongestListedPath = 16'384;  ///< folders with a longer path are listed, not entered
constexpr int kEntriesAtATime = 64;

/// A folder whose entries are being told.
struct Level {
  UniqueFd folder;
  std::string prefix;              ///< "" or "path/of/folder/"
  std::vector<std::string> names;  ///< in reverse order: the next one is the last
};

class FolderDownload : public Download {
 public:
  FolderDownload(uint32_t id, const PathMessage& message)
      : id_(id), max_depth_(std::min<uint64_t>(message.max_depth, kMostOpenFolders - 1)), left_(message.max_entries) {}

  /// Reads the names in a folder (already opened O_RDONLY): E2BIG when they are more than may still be told.
  Outcome<void> enter(UniqueFd folder, std::string prefix) {
    Level level{std::move(folder), std::move(prefix), {}};
    // The stream takes its descriptor over; ours stays for openat.
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fcntl(level.folder.get(), F_DUPFD_CLOEXEC, 3)),
                                                     closedir);
    if (!stream) return refuse(errno, "read the folder " + level.prefix);
    while (const dirent* entry = readdir(stream.get())) {
      std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (left_ == 0) return refuse(E2BIG, "more entries than asked for");
      --left_;
      level.names.push_back(std::move(name));
    }
    std::sort(level.names.begin(), level.names.end(), std::greater<>());
    levels_.push_back(std::move(level));
    return {};
  }

  bool advance(Outbox& outbox) override {
    for (int i = 0; i < kEntriesAtATime; ++i) {
      while (!levels_.empty() && levels_.back().names.empty()) levels_.pop_back();
      if (levels_.empty()) {
        outbox.push(FrameType::kDone, id_);
        return false;
      }
      if (auto told = tell_next(outbox); !told) {
        outbox.push_error(id_, std::move(told.error()));
        return false;
      }
    }
    return true;
  }

 private:
  Outcome<void> tell_next(Outbox& outbox) {
    Level& level = levels_.back();
    const std::string name = std::move(level.names.back());
    level.names.pop_back();
    auto entry = describe(level.folder.get(), name);
    if (!entry) return {};  // gone meanwhile
    entry->path = level.prefix + name;
    outbox.push_message(FrameType::kEntry, id_, *entry);
    if (entry->type != EntryType::kFolder || levels_.size() > max_depth_ || entry->path.size() > kLongestListedPath)
      return {};
    UniqueFd folder(openat(level.folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return {};  // not ours to read, or no folder any more
    return enter(std::move(folder), entry->path + "/");
  }

  uint32_t id_;
  uint64_t max_depth_;
  uint64_t left_;
  std::vector<Level> levels_;
};

}  // namespace

Outcome<std::unique_ptr<Download>> begin_list(uint32_t id, const PathMessage& message) {
  const auto place = open_folder(message, Missing::kIsAnError);
  if (!place) return tl::unexpected(place.error());
  UniqueFd folder(openat(place->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return refuse(errno, "read the folder " + message.root + "/" + message.path);
  auto download = std::make_unique<FolderDownload>(id, message);
  if (auto entered = download->enter(std::move(folder), message.path.empty() ? "" : message.path + "/"); !entered)
    return tl::unexpected(std::move(entered.error()));
  return download;
}

}  // namespace llm_sandbox::agent
