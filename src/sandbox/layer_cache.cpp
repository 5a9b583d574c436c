#include "sandbox/layer_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "base/sha256.h"
#include "base/wait.h"
#include "sandbox/layer_folder.h"
#include "sandbox/layer_tree.h"

namespace llm_sandbox {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;

constexpr const char* kContent = "content";
constexpr const char* kAbout = "about.json";
constexpr size_t kMaxAboutBytes = 65'536;
/// flock(2) can only be asked, not waited for with a deadline: how often it is asked.
constexpr auto kLockPoll = 50ms;
/// Whoever locks a layer that stands there holds it for moments, be it to look at it or to remove it.
constexpr auto kLongestMoment = 1s;
constexpr auto kShortestMoment = 1ms;

std::string id_of(const LayerDescription& description) {
  std::string text = "llm-sandbox layer, format 1\n";
  const auto add = [&](const std::string& part) { text += std::to_string(part.size()) + ":" + part + "\n"; };
  add(description.kind);
  add(description.language);
  for (const auto& ingredient : description.ingredients) add(ingredient);
  return sha256_hex(text);
}

std::string name_of(const LayerDescription& description) {
  return description.language + " " + description.kind + " (" + description.title + ")";
}

Error cancelled(const LayerDescription& description) {
  return Error{ErrorCode::kCancelled, name_of(description) + ": cancelled."};
}

Error too_large(const LayerDescription& description, Error error) {
  return std::move(error).within(name_of(description) + " is too large to keep");
}

system_clock::time_point time_of(const timespec& time) {
  return system_clock::time_point(std::chrono::duration_cast<system_clock::duration>(
      std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

std::string about_text(const LayerDescription& description, const TreeSize& size) {
  const nlohmann::ordered_json about = {{"kind", description.kind},   {"language", description.language},
                                        {"title", description.title}, {"bytes", size.bytes},
                                        {"files", size.files},        {"made", std::time(nullptr)}};
  return about.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool write_file(int folder, const char* name, std::string_view text) {
  const UniqueFd file(openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return false;
  while (!text.empty()) {
    const ssize_t count = write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::optional<LayerInfo> parse_about(const std::string& text) {
  try {
    const auto about = nlohmann::json::parse(text);
    LayerInfo layer;
    layer.description = {about.at("kind"), about.at("language"), about.at("title"), {}};
    layer.bytes = about.at("bytes");
    layer.files = about.at("files");
    layer.made = system_clock::from_time_t(about.at("made"));
    return layer;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// Nothing if the layer is not there, or not whole, as after a power failure.
Result<std::optional<LayerInfo>> read_about(const LayerFolder& folder, const std::string& id) {
  const std::string path = id + "/" + kAbout;
  const UniqueFd file(openat(folder.layers(), path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::optional<LayerInfo>();
  struct stat info {};
  std::string text(kMaxAboutBytes, '\0');
  const ssize_t count = file ? read(file.get(), text.data(), text.size()) : -1;
  if (count < 0 || fstat(file.get(), &info) != 0) return fail(folder.error("a layer cannot be read", errno));
  text.resize(static_cast<size_t>(count));
  auto layer = parse_about(text);
  if (!layer) return std::optional<LayerInfo>();
  layer->id = id;
  layer->used = time_of(info.st_mtim);
  return layer;
}

/// The most recently used first.
std::vector<LayerInfo> read_layers(const LayerFolder& folder) {
  std::vector<LayerInfo> layers;
  for (const auto& id : folder.layer_ids())
    if (auto layer = read_about(folder, id).value_or(std::nullopt)) layers.push_back(std::move(*layer));
  std::sort(layers.begin(), layers.end(), [](const LayerInfo& a, const LayerInfo& b) {
    return std::tie(a.used, a.made, a.id) > std::tie(b.used, b.made, b.id);
  });
  return layers;
}

std::optional<UniqueFd> lock_if_free(const LayerFolder& folder, const std::string& id) {
  return folder.try_lock(id, LOCK_EX).value_or(std::nullopt);
}

/// False if it is in use, or cannot be removed.
bool remove_if_free(const LayerFolder& folder, const std::string& id, Patience& patience) {
  const auto lock = lock_if_free(folder, id);
  if (!lock || !folder.remove_layer(id, patience)) return false;
  folder.forget_lock(id);
  return true;
}

void remove_broken(const LayerFolder& folder, Patience& patience) {
  for (const auto& id : folder.layer_ids()) {
    const auto about = read_about(folder, id);
    if (about && !*about) remove_if_free(folder, id, patience);
  }
}

/// What other programs may write to the disk while a layer is made, before that looks like its doing.
constexpr uint64_t kOthersMayTake = uint64_t{8} << 30;

/// Sees to it that a folder that is being filled does not grow without end.
class Watcher {
 public:
  Watcher(int parent, std::string name, const TreeLimits& limits, std::stop_token callers)
      : parent_(parent),
        name_(std::move(name)),
        limits_(limits),
        at_start_(state_of(parent)),
        chain_(std::move(callers), [this] { stop_.request_stop(); }),
        thread_([this](const std::stop_token& finished) { watch(finished); }) {}

  /// Fires with the caller's, and when the folder is too large.
  std::stop_token stop() const { return stop_.get_token(); }

  /// Why it had to be stopped, if so.
  std::optional<Error> finish() {
    thread_.request_stop();
    thread_.join();
    return error_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void watch(const std::stop_token& finished) {
    std::mutex mutex;
    std::condition_variable_any waiting;
    std::unique_lock lock(mutex);
    while (!finished.stop_requested()) {
      const auto begin = Clock::now();
      auto size = measure_tree(parent_, name_, limits_, finished);
      if (!size && size.error().code == ErrorCode::kTooLarge) return give_up(std::move(size.error()));
      // What cannot be measured now may be so the next time; in the end it is measured without forbearance.
      // A tenth of a core at the most goes into measuring.
      const auto pause = std::clamp<Clock::duration>(9 * (Clock::now() - begin), 100ms, 3s);
      for (const auto end = Clock::now() + pause; Clock::now() < end && !finished.stop_requested();) {
        if (disk_runs_full())
          return give_up({ErrorCode::kTooLarge, "the disk was nearly full, or lost more space than it may take."});
        waiting.wait_for(lock, finished, 50ms, [] { return false; });
      }
    }
  }

  void give_up(Error error) {
    error_ = std::move(error);
    stop_.request_stop();
  }

  /// Files that were unlinked while they are open take space that no walk sees.
  bool disk_runs_full() const {
    struct statvfs now {};
    if (fstatvfs(parent_, &now) != 0) return false;
    const uint64_t block = now.f_frsize;
    const uint64_t least = std::min(uint64_t{1} << 30, now.f_blocks * block / 20);
    const uint64_t taken = now.f_bavail < at_start_.f_bavail ? (at_start_.f_bavail - now.f_bavail) * block : 0;
    const bool lacks_files = now.f_files > 0 && now.f_favail < now.f_files / 50;
    return now.f_bavail * block < least || taken > limits_.bytes + kOthersMayTake || lacks_files;
  }

  static struct statvfs state_of(int folder) {
    struct statvfs state {};
    if (fstatvfs(folder, &state) != 0) state.f_bavail = 0;
    return state;
  }

  int parent_;
  std::string name_;
  TreeLimits limits_;
  struct statvfs at_start_;
  std::stop_source stop_;
  std::optional<Error> error_;
  std::stop_callback<std::function<void()>> chain_;
  std::jthread thread_;  ///< last, so that it ends first
};

/// A folder in which a layer is made; gone at the end unless it has become the layer.
class Making {
 public:
  Making(const LayerFolder& folder, std::string name, std::stop_token stop)
      : folder_(folder), name_(std::move(name)), stop_(std::move(stop)) {}
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  ~Making() {
    Patience patience(stop_);
    if (!committed_) remove_tree(folder_.making(), name_, patience);
  }

  std::string content() const { return name_ + "/" + kContent; }

  Result<void> commit(const std::string& id, const std::string& about) {
    const std::string about_file = name_ + "/" + kAbout;
    if (!write_file(folder_.making(), about_file.c_str(), about))
      return fail(folder_.error("a file cannot be written in it", errno));
    if (renameat(folder_.making(), name_.c_str(), folder_.layers(), id.c_str()) != 0)
      return fail(folder_.error("a finished layer cannot be put in its place", errno));
    committed_ = true;
    return {};
  }

 private:
  const LayerFolder& folder_;
  std::string name_;
  std::stop_token stop_;
  bool committed_ = false;
};

}  // namespace

std::optional<LayerCache::Lease> LayerCache::leased(const LayerFolder& folder, const std::string& id, UniqueFd lock) {
  const std::string about = id + "/" + kAbout;
  // That the use cannot be noted (a full disk) is no reason not to use it.
  utimensat(folder.layers(), about.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return Lease(folder.path() + "/layers/" + id + "/" + kContent, std::move(lock));
}

/// Nothing if the layer is not there whole, or somebody holds its lock exclusively.
Result<std::optional<LayerCache::Lease>> LayerCache::try_lease(const LayerFolder& folder, const std::string& id) {
  if (!folder.has_layer(id)) return std::optional<Lease>();
  auto lock = folder.try_lock(id, LOCK_SH);
  if (!lock) return fail(std::move(lock.error()));
  if (!*lock) return std::optional<Lease>();
  const auto about = read_about(folder, id);
  if (!about) return fail(Error(about.error()));
  if (!*about) return std::optional<Lease>();
  return leased(folder, id, std::move(**lock));
}

std::optional<LayerCache::Lease> LayerCache::find(const LayerDescription& description) const {
  const auto folder = LayerFolder::open(options_.folder, LayerFolder::Missing::kIsAnError);
  if (!folder) return std::nullopt;
  const std::string id = id_of(description);
  const Deadline deadline = Deadline::after(kLongestMoment);
  while (true) {
    auto lease = try_lease(*folder, id);
    if (!lease || *lease) return std::move(lease).value_or(std::nullopt);
    const auto about = read_about(*folder, id);
    if (!about || !*about || deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(kShortestMoment);  // somebody has locked it exclusively, for a moment
  }
}

Result<LayerCache::Lease> LayerCache::get(const LayerDescription& description, const Make& make, Deadline deadline,
                                          std::stop_token stop) const {
  const auto folder = LayerFolder::open(options_.folder, LayerFolder::Missing::kIsMade);
  if (!folder) return fail(Error(folder.error()));
  const std::string id = id_of(description);
  const StopWakeup stopped(stop);
  while (true) {
    auto lease = try_get(*folder, id, description, make, stop);
    if (!lease) return fail(std::move(lease.error()));
    if (*lease) return std::move(**lease);
    if (wait_for(-1, 0, Deadline::after(kLockPoll).earlier(deadline), stopped) == WaitResult::kStopped)
      return fail(cancelled(description));
    if (deadline.passed())
      return fail(ErrorCode::kTimeout, name_of(description) + ": another call is still busy with it.");
  }
}

/// Nothing if somebody else holds the lock now.
Result<std::optional<LayerCache::Lease>> LayerCache::try_get(const LayerFolder& folder, const std::string& id,
                                                             const LayerDescription& description, const Make& make,
                                                             std::stop_token stop) const {
  auto lease = try_lease(folder, id);
  if (!lease || *lease) return lease;
  auto lock = folder.try_lock(id, LOCK_EX);
  if (!lock) return fail(std::move(lock.error()));
  if (!*lock) return std::optional<Lease>();

  const auto about = read_about(folder, id);
  if (!about) return fail(Error(about.error()));
  if (!*about) {
    if (auto made = make_layer(folder, id, description, make, stop); !made) {
      folder.forget_lock(id);
      return fail(std::move(made.error()));
    }
  }
  auto shared = folder.share_lock(std::move(**lock), id);
  if (!shared || !folder.has_layer(id)) return std::optional<Lease>();
  auto result = leased(folder, id, std::move(*shared));
  if (!*about) evict(folder, stop);
  return result;
}

Result<void> LayerCache::make_layer(const LayerFolder& folder, const std::string& id,
                                    const LayerDescription& description, const Make& make, std::stop_token stop) const {
  if (stop.stop_requested()) return fail(cancelled(description));
  Patience patience(stop);
  folder.sweep(id, patience);
  if (folder.has_layer(id) && !folder.remove_layer(id, patience))
    return fail(folder.error("a damaged layer cannot be removed", errno));
  auto name = folder.start_making(id);
  if (!name) return fail(std::move(name.error()));
  Making making(folder, std::move(*name), stop);
  if (!make_folder(folder.making(), making.content(), 0755))
    return fail(folder.error("a folder cannot be made in it", errno));

  const TreeLimits limits{options_.max_layer_bytes, options_.max_layer_files};
  Watcher watcher(folder.making(), making.content(), limits, stop);
  auto made = make(folder.path() + "/making/" + making.content(), watcher.stop());
  if (auto error = watcher.finish()) return fail(too_large(description, std::move(*error)));
  if (!made) return made;

  auto size = take_over_tree(folder.making(), making.content(), limits, stop);
  if (size) return making.commit(id, about_text(description, *size));
  switch (size.error().code) {
    case ErrorCode::kCancelled:
      return fail(cancelled(description));
    case ErrorCode::kTooLarge:
      return fail(too_large(description, std::move(size.error())));
    default:
      return fail(std::move(size.error()).within(name_of(description)));
  }
}

/// Makes room: the least recently used layers go until the rest is within max_bytes.
void LayerCache::evict(const LayerFolder& folder, std::stop_token stop) const {
  Patience patience(std::move(stop));
  remove_broken(folder, patience);
  const auto layers = read_layers(folder);
  uint64_t total = 0;
  for (const auto& layer : layers) total += layer.bytes;
  for (auto layer = layers.rbegin(); layer != layers.rend() && total > options_.max_bytes; ++layer) {
    remove_if_free(folder, layer->id, patience);
    if (!folder.has_layer(layer->id)) total -= layer->bytes;  // whoever removed it
  }
}

Result<void> LayerCache::check() const {
  const auto folder = LayerFolder::open(options_.folder, LayerFolder::Missing::kIsAnError);
  if (folder || folder.error().code == ErrorCode::kNotFound) return {};
  return fail(Error(folder.error()));
}

std::vector<LayerInfo> LayerCache::list() const {
  const auto folder = LayerFolder::open(options_.folder, LayerFolder::Missing::kIsAnError);
  if (!folder) return {};
  auto layers = read_layers(*folder);
  for (auto& layer : layers) {
    const auto lock = folder->try_lock(layer.id, LOCK_EX);
    layer.in_use = lock && !*lock;
  }
  return layers;
}

std::vector<LayerInfo> LayerCache::clear(const std::string& language) const {
  const auto folder = LayerFolder::open(options_.folder, LayerFolder::Missing::kIsAnError);
  if (!folder) return {};
  Patience patience({});
  folder->sweep("", patience);
  remove_broken(*folder, patience);
  std::vector<LayerInfo> removed;
  for (auto& layer : read_layers(*folder)) {
    if (!language.empty() && layer.description.language != language) continue;
    Patience own({});
    if (remove_if_free(*folder, layer.id, own)) removed.push_back(std::move(layer));
  }
  return removed;
}

std::string default_cache_folder(const std::function<std::optional<std::string>(const std::string&)>& environment) {
  if (geteuid() == 0) return "/var/cache/llm-sandbox";
  // A relative one means nothing (XDG Base Directory Specification).
  if (const auto caches = environment("XDG_CACHE_HOME"); caches && caches->starts_with('/'))
    return *caches + "/llm-sandbox";
  if (const auto home = environment("HOME"); home && home->starts_with('/')) return *home + "/.cache/llm-sandbox";
  return "";
}

}  // namespace llm_sandbox
