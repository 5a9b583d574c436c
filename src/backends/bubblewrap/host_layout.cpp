#include "backends/bubblewrap/host_layout.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "backends/bubblewrap/host_files.h"
#include "base/text.h"

namespace llm_sandbox {

namespace embedded {
std::string_view bubblewrap_etc();
}

namespace {

namespace fs = std::filesystem;

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

/// Without `root` in front. glob(3) has already left out what does not exist; links that lead nowhere go here.
std::vector<std::string> existing(const std::string& root, const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const auto& pattern : patterns)
    for (const auto& path : matches(root + pattern))
      if (access(path.c_str(), F_OK) == 0) paths.push_back(path.substr(root.size()));
  return paths;
}

/// The content of a small regular file. The linker's cache is left out, as it changes with each package installed.
std::optional<std::string> small_file(const std::string& path) {
  constexpr off_t kMaxBytes = 32 << 10;
  struct stat info {};
  const bool small = stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= kMaxBytes;
  if (!small || path.ends_with("/ld.so.cache")) return std::nullopt;
  return read_host_file(path);
}

std::vector<std::string> etc_patterns(const nlohmann::json& names) {
  std::vector<std::string> patterns;
  for (const auto& name : names) patterns.push_back("/etc/" + name.get<std::string>());
  return patterns;
}

bool is_below(const std::string& path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

bool is_or_holds(const std::string& path, const std::string& other) {
  return path == other || path == "/" || is_below(other, path);
}

/// Why a path, already free of links, must not be shown; empty if it may.
std::string objection(const std::string& path, const std::string& home) {
  static constexpr std::array<std::string_view, 5> kNothingOf = {"/etc", "/proc", "/sys", "/dev", "/run"};
  for (const auto folder : kNothingOf)
    if (path == folder || is_below(path, folder)) return "nothing of the host's " + std::string(folder) + " is shown";
  static constexpr std::array<std::string_view, 11> kNotWhole = {
      "/root", "/home", "/var", "/var/lib", "/boot", "/tmp", "/var/tmp", "/srv", "/mnt", "/media", "/opt"};
  for (const auto folder : kNotWhole)
    if (is_or_holds(path, std::string(folder))) return "that would show all of " + std::string(folder);
  if (!home.empty() && is_or_holds(path, home)) return "that would show a whole home";
  if (fs::path(path).parent_path() == "/home") return "that would show a whole home";
  static constexpr std::array<std::string_view, 2> kOwn = {"/sandbox", "/llm-sandbox"};
  for (const auto folder : kOwn)
    if (path == folder || is_below(path, folder)) return "the sandbox has a " + std::string(folder) + " of its own";
  return "";
}

tl::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kPolicy, "The runtime folder " + path + " is not shown in a sandbox: " + why + ".",
              "Install the runtime in a folder of its own.");
}

Result<void> check_runtime_path(const std::string& path, const std::string& home) {
  if (!path.starts_with("/")) return refused(path, "its path is not absolute");
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return refused(path, error.message());
  for (const auto& each : {path, real.string()})
    if (const auto why = objection(each, home); !why.empty()) return refused(path, why);
  return {};
}

/// "/a//b/../c/" is "/a/c".
std::string normalized(const std::string& path) {
  std::string normal = fs::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with("/")) normal.pop_back();
  return normal;
}

bool permits(const struct stat& info, mode_t bits) { return (info.st_mode & bits) == bits; }

bool can_enter(const fs::path& folder, Viewer viewer) {
  if (viewer == Viewer::kSelf) return access(folder.c_str(), X_OK) == 0;
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && permits(info, S_IXOTH);
}

bool can_use(const fs::path& target, Viewer viewer) {
  struct stat info {};
  if (stat(target.c_str(), &info) != 0) return false;
  const bool run = S_ISDIR(info.st_mode) || (info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
  if (viewer == Viewer::kSelf) return access(target.c_str(), run ? R_OK | X_OK : R_OK) == 0;
  return permits(info, run ? S_IROTH | S_IXOTH : S_IROTH);
}

bool can_walk_to(const fs::path& path, Viewer viewer) {
  for (fs::path folder = path.parent_path();; folder = folder.parent_path()) {
    if (!can_enter(folder, viewer)) return false;
    if (folder == folder.root_path()) return true;
  }
}

}  // namespace

HostLayout HostLayout::look(const std::string& root) {
  HostLayout layout;
  for (const auto& path : existing(root, {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"})) {
    std::error_code error;
    const fs::path target = fs::read_symlink(root + path, error);
    const fs::path inside = ("/" / target).lexically_normal();
    const bool into_usr = !error && is_below(inside.string(), "/usr");
    layout.system.push_back({path, into_usr ? inside.relative_path().string() : ""});
  }
  const auto list = nlohmann::json::parse(embedded::bubblewrap_etc());
  for (const auto& path : existing(root, etc_patterns(list.at("shown")))) {
    if (auto content = small_file(root + path))
      layout.etc_files.push_back({path, std::move(*content)});
    else
      layout.etc.push_back(path);
  }
  layout.etc_with_network = existing(root, etc_patterns(list.at("shown_with_network")));
  return layout;
}

bool can_reach(const std::string& path, Viewer viewer) {
  const fs::path given = fs::path(path).lexically_normal();
  if (!given.is_absolute()) return false;
  std::error_code error;
  const fs::path real = fs::canonical(given, error);
  return !error && can_walk_to(given, viewer) && can_walk_to(real, viewer) && can_use(real, viewer);
}

Result<std::vector<std::string>> runtime_mounts(const std::vector<std::string>& runtime_paths,
                                                const std::string& home) {
  std::set<std::string> mounts;  // in order, so that an outer folder comes before one inside it
  for (const auto& given : runtime_paths) {
    const std::string path = normalized(given);
    if (path == "/usr" || is_below(path, "/usr")) continue;
    if (auto checked = check_runtime_path(path, home); !checked) return fail(std::move(checked.error()));
    mounts.insert(path);
  }
  return std::vector<std::string>(mounts.begin(), mounts.end());
}

}  // namespace llm_sandbox
