#include "sandbox/output.h"

#include <algorithm>
#include <utility>

namespace llm_sandbox {
namespace {

constexpr size_t kMaxLineBytes = 200;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Drops an unfinished character from the end of a text (at most three bytes of one).
void drop_cut_end(std::string& text) {
  size_t back = 0;
  while (back < 3 && back < text.size() && is_continuation(text[text.size() - 1 - back])) ++back;
  if (back >= text.size()) return;
  const auto lead = static_cast<unsigned char>(text[text.size() - 1 - back]);
  const size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  if (need > back) text.resize(text.size() - 1 - back);
}

/// Drops the rest of a cut character from the start of a text.
void drop_cut_start(std::string& text) {
  size_t count = 0;
  while (count < 3 && count < text.size() && is_continuation(text[count])) ++count;
  text.erase(0, count);
}

}  // namespace

OutputBuffer::OutputBuffer(uint64_t kept_bytes)
    : head_limit_(kept_bytes / 2), tail_limit_(kept_bytes - kept_bytes / 2) {}

void OutputBuffer::append(std::string_view bytes) {
  total_ += bytes.size();
  const size_t to_head = std::min<uint64_t>(bytes.size(), head_limit_ - head_.size());
  head_ += bytes.substr(0, to_head);
  bytes.remove_prefix(to_head);
  if (bytes.size() > tail_limit_) bytes.remove_prefix(bytes.size() - tail_limit_);

  const size_t to_fill = std::min<uint64_t>(bytes.size(), tail_limit_ - tail_.size());
  tail_ += bytes.substr(0, to_fill);
  bytes.remove_prefix(to_fill);
  while (!bytes.empty()) {
    const size_t run = std::min<uint64_t>(bytes.size(), tail_limit_ - tail_start_);
    bytes.copy(tail_.data() + tail_start_, run);
    tail_start_ = (tail_start_ + run) % tail_limit_;
    bytes.remove_prefix(run);
  }
}

std::string OutputBuffer::take() {
  std::rotate(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(tail_start_), tail_.end());
  std::string result = std::move(head_);
  if (truncated()) {
    drop_cut_end(result);
    drop_cut_start(tail_);
    const uint64_t left_out = total_ - result.size() - tail_.size();
    result += "\n[... " + std::to_string(left_out) + " bytes left out ...]\n";
  }
  result += tail_;
  head_.clear();
  tail_.clear();
  tail_start_ = 0;
  total_ = 0;
  return result;
}

void LastLine::append(std::string_view bytes) {
  const size_t end = bytes.rfind('\n');
  if (end != std::string_view::npos) {
    const std::string_view before = bytes.substr(0, end);
    const size_t start = before.rfind('\n');
    if (start == std::string_view::npos) {
      line_ = partial_.append(before.substr(0, kMaxLineBytes));
    } else {
      line_ = before.substr(start + 1, kMaxLineBytes);
    }
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
  partial_ += bytes.substr(0, kMaxLineBytes - std::min(kMaxLineBytes, partial_.size()));
  if (line_.size() > kMaxLineBytes) line_.resize(kMaxLineBytes);
}

}  // namespace llm_sandbox
