#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace llm_sandbox {

/// Keeps the beginning and the end of an endless byte stream in bounded memory.
/// One thread at a time.
class OutputBuffer {
 public:
  /// Keeps `kept_bytes` in all, half from the beginning and half from the end.
  explicit OutputBuffer(uint64_t kept_bytes);

  void append(std::string_view bytes);

  /// Whether something had to be left out.
  bool truncated() const { return total_ > head_limit_ + tail_limit_; }
  /// What was kept; where something was left out, with a note between that says how much. UTF-8 characters cut at the
  /// seam are left out whole. Leaves the buffer empty.
  std::string take();

 private:
  const uint64_t head_limit_;
  const uint64_t tail_limit_;
  uint64_t total_ = 0;
  std::string head_;
  std::string tail_;         ///< a ring once it has tail_limit_ bytes
  uint64_t tail_start_ = 0;  ///< where the oldest byte of the ring stands
};

/// The newest whole or started line of a text, for progress messages.
class LastLine {
 public:
  void append(std::string_view bytes);
  /// At most 200 bytes, without its newline; empty before any output.
  const std::string& text() const { return partial_.empty() ? line_ : partial_; }

 private:
  std::string line_;
  std::string partial_;
};

}  // namespace llm_sandbox
