#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

class LayerFolder;

/// What a layer is, for its key and for `llm-sandbox cache list`.
struct LayerDescription {
  std::string kind;      ///< "packages" or "prepared"
  std::string language;  ///< "python"
  std::string title;     ///< for people: "numpy, pandas==2.2" or "Python 3.11.2"
  /// All that its content depends on, in order: runtime, version, names, commands, files. Two layers with equal kind,
  /// language and ingredients are the same layer. Never holds secrets (it is hashed, but may be shown when debugging).
  std::vector<std::string> ingredients;
};

struct LayerInfo {
  std::string id;                ///< the key's hexadecimal digits
  LayerDescription description;  ///< without ingredients
  uint64_t bytes = 0;
  uint64_t files = 0;
  std::chrono::system_clock::time_point made;
  std::chrono::system_clock::time_point used;
  bool in_use = false;
};

/// Folders that were made once and are shown read-only to many sandboxes: installed packages, prepared runtimes. Kept
/// on the host's disk, shared by all servers of a user, bounded in size (the least recently used go first), safe
/// against a kill at any moment (a layer is either whole or not there). Thread-safe, and safe between processes
/// (flock(2)). What was made of a layer belongs to the server's user, is readable by all ids and writable by none but
/// its owner.
class LayerCache {
 public:
  struct Options {
    std::string folder;                            ///< made if missing (its parents, too)
    uint64_t max_bytes = uint64_t{5} << 30;        ///< of all layers together; those in use are never removed
    uint64_t max_layer_bytes = uint64_t{2} << 30;  ///< a larger one is refused while it is made
    uint64_t max_layer_files = 500'000;            ///< likewise; folders and links count, too
  };

  /// A layer in use: it stays as long as this lives. It holds one descriptor.
  class Lease {
   public:
    /// Absolute path on the host; not to be written to.
    const std::string& folder() const { return folder_; }

   private:
    friend class LayerCache;
    Lease(std::string folder, UniqueFd lock) : folder_(std::move(folder)), lock_(std::move(lock)) {}

    std::string folder_;
    UniqueFd lock_;
  };

  /// Fills an empty folder of the host, which nobody else touches meanwhile. It may leave hostile content (links, odd
  /// modes, foreign owners): the cache never follows or trusts any of it. When it returns, nothing may still write
  /// there.
  using Make = std::function<Result<void>(const std::string& folder, std::stop_token stop)>;

  /// Never fails: a folder that cannot be made or used is told by get().
  explicit LayerCache(Options options) : options_(std::move(options)) {}

  /// The layer if it is there already.
  std::optional<Lease> find(const LayerDescription& description) const;
  /// The layer, made by `make` if it is not there. Whoever asks for the same one meanwhile, in whatever process, waits
  /// (until `deadline` or stop: kTimeout, kCancelled) and gets the one that was made; if that attempt failed, the next
  /// waiter tries. `make` is told to stop when the caller's stop fires or when the folder grows beyond
  /// max_layer_bytes/max_layer_files; the latter is then kTooLarge. The deadline is for waiting: `make` keeps its own
  /// time. An unusable cache folder is kIo with a sentence that names it, says why and what to set.
  Result<Lease> get(const LayerDescription& description, const Make& make, Deadline deadline,
                    std::stop_token stop) const;

  /// The error that get() would give, where that can be told without making the folder.
  Result<void> check() const;
  /// The most recently used first.
  std::vector<LayerInfo> list() const;
  /// Removes all layers that are not in use (of one language if named); returns what was removed.
  std::vector<LayerInfo> clear(const std::string& language = {}) const;

 private:
  static std::optional<Lease> leased(const LayerFolder& folder, const std::string& id, UniqueFd lock);
  static Result<std::optional<Lease>> try_lease(const LayerFolder& folder, const std::string& id);
  Result<std::optional<Lease>> try_get(const LayerFolder& folder, const std::string& id,
                                       const LayerDescription& description, const Make& make,
                                       std::stop_token stop) const;
  Result<void> make_layer(const LayerFolder& folder, const std::string& id, const LayerDescription& description,
                          const Make& make, std::stop_token stop) const;
  void evict(const LayerFolder& folder, std::stop_token stop) const;

  Options options_;
};

/// Where layers are kept when nothing is set: /var/cache/llm-sandbox for root (others' ids must reach it), else
/// $XDG_CACHE_HOME/llm-sandbox or ~/.cache/llm-sandbox. Empty where neither variable is set.
std::string default_cache_folder(const std::function<std::optional<std::string>(const std::string&)>& environment);

}  // namespace llm_sandbox
