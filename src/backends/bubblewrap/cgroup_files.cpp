#include "backends/bubblewrap/cgroup_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "backends/bubblewrap/host_files.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

std::optional<std::string> CgroupFiles::read(const std::string& path) const { return read_host_file(path); }

int CgroupFiles::write(const std::string& path, const std::string& text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

int CgroupFiles::make_folder(const std::string& path) { return mkdir(path.c_str(), 0755) == 0 ? 0 : errno; }

int CgroupFiles::remove_folder(const std::string& path) { return rmdir(path.c_str()) == 0 ? 0 : errno; }

bool CgroupFiles::exists(const std::string& path) const { return access(path.c_str(), F_OK) == 0; }

std::vector<std::string> CgroupFiles::folders(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_directory(error)) names.push_back(entry->path().filename().string());
  return names;
}

}  // namespace llm_sandbox
