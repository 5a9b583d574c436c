#include "backends/bubblewrap/host_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/text.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

std::optional<std::string> read_host_file(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string content;
  std::array<char, 4096> buffer;
  while (content.size() < kMaxBytes) {
    const ssize_t count = read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    content.append(buffer.data(), static_cast<size_t>(count));
  }
  return content;
}

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> result;
  for (auto& part : split(line, ' '))
    if (const auto word = trim(part); !word.empty()) result.emplace_back(word);
  return result;
}

std::optional<uint64_t> to_number(std::string_view digits) {
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end || digits.empty()) return std::nullopt;
  return value;
}

}  // namespace llm_sandbox
