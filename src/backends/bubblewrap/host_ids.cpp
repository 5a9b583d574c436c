#include "backends/bubblewrap/host_ids.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "backends/bubblewrap/host_files.h"
#include "base/text.h"

namespace llm_sandbox {
namespace {

/// First what no tool hands out; then, for containers whose map ends at 65535, two gaps of systemd's table and
/// "nobody".
constexpr std::array kWanted = {IdRange{1'879'048'192, 1'879'048'192 + 4095}, IdRange{60'706, 61'183},
                                IdRange{65'520, 65'534}};

/// The ids that exist here, by the first and third column of a map.
std::vector<IdRange> mapped(std::string_view map) {
  std::vector<IdRange> result;
  for (const auto& line : split(map, '\n')) {
    const auto columns = words(line);
    if (columns.size() != 3) continue;
    const auto first = to_number(columns[0]);
    const auto count = to_number(columns[2]);
    if (!first || !count || *count == 0 || *first > 0xffff'fffeULL) continue;
    const uint64_t last = std::min<uint64_t>(*first + std::min<uint64_t>(*count, 0xffff'ffffULL) - 1, 0xffff'fffeULL);
    result.push_back({static_cast<uint32_t>(*first), static_cast<uint32_t>(last)});
  }
  return result;
}

std::vector<IdRange> intersection(const std::vector<IdRange>& left, const std::vector<IdRange>& right) {
  std::vector<IdRange> result;
  for (const auto& a : left)
    for (const auto& b : right) {
      const IdRange both{std::max(a.first, b.first), std::min(a.last, b.last)};
      if (both.first <= both.last) result.push_back(both);
    }
  return result;
}

/// Makes the folder and refuses one that somebody else could have put there.
Result<UniqueFd> open_own_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return fail_errno("use " + folder + " to share out host ids", errno);
  if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::kBackendUnavailable, "The folder " + folder + " belongs to somebody else.", "Remove it.");
  return fd;
}

/// Nothing when another sandbox has it.
Result<std::optional<HostId>> try_claim(int folder, uint32_t id) {
  UniqueFd lock(openat(folder, std::to_string(id).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return fail_errno("lock host id " + std::to_string(id) + " for a sandbox", errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return std::optional<HostId>();
  return std::optional<HostId>(HostId(id, std::move(lock)));
}

}  // namespace

std::vector<IdRange> ids_for(std::string_view uid_map, std::string_view gid_map) {
  return intersection({kWanted.begin(), kWanted.end()}, intersection(mapped(uid_map), mapped(gid_map)));
}

HostIds HostIds::of_host() {
  return HostIds("/run/llm-sandbox/ids", ids_for(read_host_file("/proc/self/uid_map").value_or(""),
                                                 read_host_file("/proc/self/gid_map").value_or("")));
}

Result<HostId> HostIds::claim() const {
  if (ranges_.empty())
    return fail(ErrorCode::kBackendUnavailable,
                "The server runs as root in a user namespace that maps no id for a sandbox to run under.",
                "Run it as an ordinary user, or map more ids (65536 are enough).");
  const auto folder = open_own_folder(folder_);
  if (!folder) return fail(Error(folder.error()));
  for (const auto& range : ranges_)
    for (uint32_t id = range.first; id <= range.last; ++id) {
      auto claimed = try_claim(folder->get(), id);
      if (!claimed) return fail(std::move(claimed.error()));
      if (*claimed) return std::move(**claimed);
    }
  return fail(ErrorCode::kBackendUnavailable, "All host ids for sandboxes are taken (locks in " + folder_ + ").",
              "Run fewer sandboxes at once.");
}

}  // namespace llm_sandbox
