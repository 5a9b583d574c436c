#include "backends/bubblewrap/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace llm_sandbox {
namespace {

constexpr unsigned kMfdExec = 0x0010U;  // MFD_EXEC of Linux 6.3; Debian 12's headers lack it

int create(const char* name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create(name, flags | kMfdExec);
  return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

Result<MemoryFile> MemoryFile::make(const char* name, std::string_view content) {
  UniqueFd fd(create(name));
  const std::string what = std::string("keep ") + name + " in memory";
  if (!fd) return fail_errno(what + " (memfd_create)", errno);
  if (!write_all(fd.get(), content)) return fail_errno(what, errno);
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return fail_errno(what + " (F_ADD_SEALS)", errno);
  return MemoryFile(std::move(fd));
}

Result<UniqueFd> MemoryFile::reopen() const {
  const std::string path = "/proc/self/fd/" + std::to_string(fd_.get());
  UniqueFd fresh(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fresh) return fail_errno("open " + path, errno);
  return fresh;
}

}  // namespace llm_sandbox
