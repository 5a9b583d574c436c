#pragma once

#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

/// Bytes in a sealed memfd (memfd_create(2)): a file without a place in any file system that nobody can change any
/// more. What bubblewrap shall read or run is handed over in this form. Immutable, so safe from any thread.
class MemoryFile {
 public:
  /// `name` shows in /proc only. kIo, also where vm.memfd_noexec forbids memfds that can be run.
  static Result<MemoryFile> make(const char* name, std::string_view content);

  /// A description of its own for each reader, as duplicates would share one file offset.
  Result<UniqueFd> reopen() const;
  int fd() const { return fd_.get(); }

 private:
  explicit MemoryFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace llm_sandbox
