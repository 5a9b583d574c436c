#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace llm_sandbox {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder of its own for one test, readable by everyone, gone at the end.
class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/llm-sandbox-test-XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
    chmod(name, 0755);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path(const std::string& below = "") const { return below.empty() ? path_ : path_ + "/" + below; }

  std::string folder(const std::string& below) const {
    std::filesystem::create_directories(path(below));
    return path(below);
  }

  std::string file(const std::string& below, const std::string& content, mode_t mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(path(below)).parent_path());
    std::ofstream(path(below), std::ios::binary) << content;
    chmod(path(below).c_str(), mode);
    return path(below);
  }

  std::string script(const std::string& below, const std::string& commands) const {
    return file(below, "#!/bin/sh\n" + commands + "\n", 0755);
  }

 private:
  std::string path_;
};

}  // namespace llm_sandbox
