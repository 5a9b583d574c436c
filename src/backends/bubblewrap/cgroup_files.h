#pragma once

#include <optional>
#include <string>
#include <vector>

namespace llm_sandbox {

/// The kernel's cgroup file systems, as far as we use them. A seam: tests put a fake of the hierarchies that their
/// machine lacks in its place. Functions that return int return 0 or an errno value. Safe from any thread.
class CgroupFiles {
 public:
  virtual ~CgroupFiles() = default;
  virtual std::optional<std::string> read(const std::string& path) const;
  virtual int write(const std::string& path, const std::string& text);
  virtual int make_folder(const std::string& path);
  virtual int remove_folder(const std::string& path);
  bool exists(const std::string& path) const;
  /// Names of the folders directly below.
  std::vector<std::string> folders(const std::string& path) const;
};

}  // namespace llm_sandbox
