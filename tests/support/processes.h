#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace llm_sandbox {

/// The ids of the processes of this machine whose command line holds the mark. One that ends meanwhile counts as gone:
/// reading its file is an error then, which an istreambuf_iterator would throw.
inline std::vector<std::string> processes_with(const std::string& mark) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ostringstream command;
    command << std::ifstream(entry.path() / "cmdline", std::ios::binary).rdbuf();
    if (command.str().find(mark) != std::string::npos) found.push_back(entry.path().filename());
  }
  return found;
}

}  // namespace llm_sandbox
