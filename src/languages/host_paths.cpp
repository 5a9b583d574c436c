#include "languages/host_paths.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace llm_sandbox {
namespace {

constexpr std::array kBaseSystem = {"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin"};
constexpr std::array kTooWide = {"/etc", "/var", "/opt", "/srv",  "/mnt", "/media", "/root",   "/home",
                                 "/tmp", "/run", "/sys", "/proc", "/dev", "/boot",  "/var/tmp"};
constexpr int kMaxLinks = 40;  // as the kernel

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

/// Where a symbolic link points, as an absolute path; empty if it is not one.
std::string link_target(const std::string& path) {
  std::array<char, PATH_MAX> buffer;
  const ssize_t length = readlink(path.c_str(), buffer.data(), buffer.size());
  if (length <= 0) return {};
  const std::filesystem::path target(std::string(buffer.data(), static_cast<size_t>(length)));
  return (std::filesystem::path(parent(path)) / target).lexically_normal().string();
}

bool is_folder(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::is_directory(path, unreadable);
}

}  // namespace

bool is_within(const std::string& path, const std::string& folder) {
  if (folder == "/") return true;
  return path.rfind(folder, 0) == 0 && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_within_any(const std::string& path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const auto& folder) { return is_within(path, folder); });
}

bool in_base_system(const std::string& path) {
  return std::any_of(kBaseSystem.begin(), kBaseSystem.end(), [&](const char* base) { return is_within(path, base); });
}

std::string canonical(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real ? std::string(real.get()) : std::string();
}

std::string canonical_folder(const std::string& path) {
  const std::string folder = canonical(parent(path));
  return folder.empty() ? folder : (folder == "/" ? "" : folder) + path.substr(path.rfind('/'));
}

std::string prefix_of(const std::string& executable) {
  const std::string folder = executable.substr(0, executable.rfind('/'));
  return folder.ends_with("/bin") ? folder.substr(0, folder.size() - 4) : folder;
}

std::vector<std::string> folders_to_show(const std::vector<std::string>& places) {
  std::vector<std::string> folders;
  for (const auto& place : places) {
    const std::string real = canonical(place);
    if (real.empty()) continue;
    for (const auto& name : {real, std::filesystem::path(place).lexically_normal().string()})
      if (!in_base_system(name)) folders.push_back(name);
  }
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> result;
  for (auto& folder : folders)
    if (!is_within_any(folder, result)) result.push_back(std::move(folder));
  return result;
}

bool too_wide(const std::string& folder, const std::string& home) {
  if (is_within("/", folder) || std::find(kTooWide.begin(), kTooWide.end(), folder) != kTooWide.end()) return true;
  if (parent(folder) == "/home") return true;
  return !home.empty() && (is_within(home, folder) || is_within(canonical(home), folder));
}

std::string uncovered_link(const std::string& file, const std::vector<std::string>& shown) {
  std::string place = file;
  for (int i = 0; i < kMaxLinks && !place.empty(); ++i) {
    if (!in_base_system(place) && !is_within_any(place, shown)) return place;
    place = link_target(place);
  }
  const std::string real = canonical(file);
  return in_base_system(real) || is_within_any(real, shown) ? std::string() : real;
}

std::vector<std::string> expand_place(const std::string& place, const std::string& home) {
  std::string pattern = place;
  if (pattern.rfind("~/", 0) == 0) {
    if (home.empty()) return {};
    pattern.replace(0, 1, home);
  }
  glob_t matches{};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&matches, &globfree);
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches) != 0) return {};
  std::vector<std::string> folders(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  std::erase_if(folders, [](const auto& path) { return !is_folder(path); });
  std::sort(folders.begin(), folders.end(),
            [](const auto& a, const auto& b) { return strverscmp(a.c_str(), b.c_str()) > 0; });
  return folders;
}

}  // namespace llm_sandbox
