#include "sandbox/agent/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace llm_sandbox::agent {
namespace {

constexpr int kMostScans = 8;  ///< for new descendants in one round of killing

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

/// The beginning of a small file of /proc; empty if the process is gone.
std::string_view read_proc(const std::string& folder, const char* name, std::array<char, 4096>& buffer) {
  const std::string path = folder + "/" + name;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const ssize_t count = read(file.get(), buffer.data(), buffer.size());
  return count > 0 ? std::string_view(buffer.data(), static_cast<size_t>(count)) : std::string_view{};
}

template <typename Integer>
std::optional<Integer> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Integer value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

/// The number behind "\nName:"; 0 if there is none (a zombie has no memory).
uint64_t field_of(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  return at == std::string_view::npos ? 0 : leading_number<uint64_t>(text.substr(at + name.size())).value_or(0);
}

/// Of the processes in /proc or the threads in a "task" folder.
std::vector<pid_t> ids_in(const std::string& path) {
  std::vector<pid_t> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return ids;
  while (const dirent* entry = readdir(folder.get()))
    if (const auto id = leading_number<pid_t>(entry->d_name)) ids.push_back(*id);
  return ids;
}

std::vector<pid_t> all_processes() { return ids_in("/proc"); }

std::optional<pid_t> parent_of(pid_t pid) {
  std::array<char, 4096> buffer;
  const std::string_view stat = read_proc(folder_of(pid), "stat", buffer);
  const size_t name_end = stat.rfind(')');  // the name before it may hold anything
  if (name_end == std::string_view::npos || stat.size() < name_end + 5) return std::nullopt;
  return leading_number<pid_t>(stat.substr(name_end + 4));  // ") S PPID"
}

std::vector<pid_t> descendants() {
  struct Link {
    pid_t parent;
    pid_t child;
    bool operator<(const Link& other) const { return parent < other.parent; }
  };
  std::vector<Link> links;
  for (const pid_t pid : all_processes())
    if (const auto parent = parent_of(pid)) links.push_back({*parent, pid});
  std::sort(links.begin(), links.end());

  std::vector<pid_t> found{getpid()};
  for (size_t i = 0; i < found.size() && found.size() <= links.size(); ++i) {
    const auto [first, last] = std::equal_range(links.begin(), links.end(), Link{found[i], 0});
    std::for_each(first, last, [&](const Link& link) { found.push_back(link.child); });
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> tree_members() {
  if (getpid() != 1) return descendants();
  auto members = all_processes();
  std::erase(members, 1);
  return members;
}

/// Stops all descendants, looks again for what they started meanwhile, and kills only once nothing new turns up: a
/// stopped parent cannot outrun the scan.
void kill_descendants() {
  std::vector<pid_t> stopped;
  for (int scan = 0; scan < kMostScans; ++scan) {
    auto found = descendants();
    std::sort(found.begin(), found.end());
    if (std::includes(stopped.begin(), stopped.end(), found.begin(), found.end())) break;
    for (const pid_t pid : found) kill(pid, SIGSTOP);
    stopped = std::move(found);
  }
  for (const pid_t pid : stopped) kill(pid, SIGKILL);
}

bool tells_memory(std::string_view status) { return status.find("\nRssAnon:") != std::string_view::npos; }

/// Page tables count as well: they grow with pages that are touched but shared, and so are nobody's anonymous memory.
uint64_t held_bytes(std::string_view status) {
  return (field_of(status, "\nRssAnon:") + field_of(status, "\nRssShmem:") + field_of(status, "\nVmPTE:")) << 10;
}

/// The folder of a thread that still has the process' memory: a main thread that has ended before the others shows
/// none.
std::string folder_with_memory(pid_t pid, std::array<char, 4096>& buffer) {
  std::string process = folder_of(pid);
  if (tells_memory(read_proc(process, "status", buffer))) return process;
  for (const pid_t id : ids_in(process + "/task")) {
    std::string thread = process + "/task/" + std::to_string(id);
    if (tells_memory(read_proc(thread, "status", buffer))) return thread;
  }
  return process;
}

uint64_t microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

void ProcessTree::reap() {
  while (true) {
    int status = 0;
    rusage use{};
    const pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &use);
    if (pid < 0 && errno == EINTR) continue;
    empty_ = pid < 0;  // ECHILD
    if (pid <= 0) return;
    if (pid == main_) main_status_ = status;
    user_us_ += microseconds(use.ru_utime);
    system_us_ += microseconds(use.ru_stime);
    max_rss_bytes_ = std::max(max_rss_bytes_, static_cast<uint64_t>(use.ru_maxrss) << 10);
  }
}

void ProcessTree::kill_round() const {
  if (getpid() == 1)
    kill(-1, SIGKILL);
  else
    kill_descendants();
}

TreeUse ProcessTree::measure(uint64_t enough_bytes) const {
  std::array<char, 4096> buffer;
  const auto members = tree_members();
  TreeUse use;
  for (const pid_t pid : members) {
    use.tasks += field_of(read_proc(folder_of(pid), "status", buffer), "\nThreads:");
    use.memory_bytes += held_bytes(read_proc(folder_with_memory(pid, buffer), "status", buffer));
  }
  if (enough_bytes == 0 || use.memory_bytes <= enough_bytes) return use;

  // Pages shared after a fork were counted once for each process that maps them; the proportional sizes count them
  // once.
  uint64_t precise = 0;
  for (const pid_t pid : members) {
    const std::string folder = folder_with_memory(pid, buffer);
    const std::string_view status = read_proc(folder, "status", buffer);
    const uint64_t page_tables = field_of(status, "\nVmPTE:") << 10;
    const uint64_t resident = held_bytes(status);
    const std::string_view rollup = read_proc(folder, "smaps_rollup", buffer);
    const bool proportional = rollup.find("\nPss_Anon:") != std::string_view::npos;
    precise += proportional ? page_tables + ((field_of(rollup, "\nPss_Anon:") + field_of(rollup, "\nPss_Shmem:")) << 10)
                            : resident;
  }
  use.memory_bytes = std::min(use.memory_bytes, precise);
  return use;
}

}  // namespace llm_sandbox::agent
