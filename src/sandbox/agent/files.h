#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "sandbox/agent/messages.h"
#include "sandbox/agent/outbox.h"
#include "sandbox/agent/outcome.h"
#include "sandbox/agent/path_walk.h"

namespace llm_sandbox::agent {

Outcome<void> make_folder(const PathMessage& message);
Outcome<void> make_symlink(const PathMessage& message);

/// A file on its way in (kPutFile). Always a new one: what stood at its place is unlinked first, never written through.
/// Unless finish() was reached, the destructor takes the partial file away again.
class Upload {
 public:
  static Outcome<Upload> begin(uint32_t id, const PathMessage& message);
  Upload(Upload&&) noexcept = default;
  Upload& operator=(Upload&&) = delete;
  ~Upload();

  uint32_t id() const { return id_; }
  Outcome<void> write(std::string_view bytes);
  Outcome<void> finish();

 private:
  Upload(uint32_t id, Place place, UniqueFd file, mode_t mode);

  uint32_t id_;
  Place place_;
  UniqueFd file_;
  mode_t mode_;
};

/// Something on its way out, piece by piece, so that the loop is never kept from its other duties.
class Download {
 public:
  virtual ~Download() = default;
  /// Puts the next piece into an outbox that has room, at last kDone or kError; false once that is done.
  virtual bool advance(Outbox& outbox) = 0;
};

/// A regular file (kGetFile).
Outcome<std::unique_ptr<Download>> begin_get(uint32_t id, const PathMessage& message);
/// What lies below a folder (kList).
Outcome<std::unique_ptr<Download>> begin_list(uint32_t id, const PathMessage& message);

/// What fstatat tells of the thing `name` in `folder`; its path is left to the caller.
Outcome<EntryMessage> describe(int folder, const std::string& name);

}  // namespace llm_sandbox::agent
