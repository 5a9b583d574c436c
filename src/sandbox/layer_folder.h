#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "sandbox/layer_tree.h"

namespace llm_sandbox {

/// The folder of a LayerCache on the disk, opened and found safe to use:
///   layers/ID/{content/,about.json}   a layer, whole from the moment it stands there
///   making/ID-PID-RANDOM/…            one that is being made or removed, by whoever holds the lock of ID
///   locks/ID                          flock(2): shared by whoever uses the layer, exclusive to make or remove it
/// Opened anew for each operation, as a user may remove it at any time.
class LayerFolder {
 public:
  enum class Missing { kIsAnError, kIsMade };
  /// kIo with a sentence that names the folder, says why and what to set; kNotFound if missing and not to be made.
  static Result<LayerFolder> open(const std::string& path, Missing missing);

  /// Absolute, without links.
  const std::string& path() const { return path_; }
  int layers() const { return layers_.get(); }
  int making() const { return making_.get(); }

  /// An error of this folder, for what errno says.
  Error error(const std::string& what, int error_number) const;

  /// flock(2) with LOCK_SH or LOCK_EX, without waiting; nothing if somebody else's lock forbids it.
  Result<std::optional<UniqueFd>> try_lock(const std::string& id, int operation) const;
  /// Makes an exclusive lock a shared one; nothing if somebody else came between, as the kernel first gives it up.
  std::optional<UniqueFd> share_lock(UniqueFd lock, const std::string& id) const;
  /// Removes the lock's file; only for whoever holds it exclusively, and lets it go now.
  void forget_lock(const std::string& id) const;

  /// A new folder in making/, and its name.
  Result<std::string> start_making(const std::string& id) const;
  /// Moves the layer out of sight, then deletes it; only for whoever holds its lock exclusively. False if the layer
  /// is still there (errno).
  bool remove_layer(const std::string& id, Patience& patience) const;
  /// Removes what servers that were killed have left: of `held`, whose lock the caller has, and of all ids that nobody
  /// has locked.
  void sweep(const std::string& held, Patience& patience) const;

  /// The ids of all layers, in no order.
  std::vector<std::string> layer_ids() const;
  bool has_layer(const std::string& id) const;

 private:
  LayerFolder() = default;

  std::string path_;
  UniqueFd layers_;
  UniqueFd making_;
  UniqueFd locks_;
};

/// Makes a folder whose mode no umask changes; one that is there already is left alone. False on failure (errno).
bool make_folder(int parent, const std::string& name, mode_t mode);

}  // namespace llm_sandbox
