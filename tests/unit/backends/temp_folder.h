#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace llm_sandbox::test {

/// A folder in /tmp that everybody may enter, removed at the end. Paths given to its members begin with "/".
class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/llm-sandbox-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator+(const std::string& below) const { return path_ + below; }

  void folder(const std::string& path) const { std::filesystem::create_directories(path_ + path); }
  void file(const std::string& path, const std::string& content = "x", unsigned mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + path).parent_path());
    std::ofstream(path_ + path) << content;
    std::filesystem::permissions(path_ + path, std::filesystem::perms(mode));
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_symlink(target, path_ + path);
  }

 private:
  std::string path_;
};

}  // namespace llm_sandbox::test
