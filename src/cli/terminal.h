#pragma once

#include <string>
#include <string_view>

namespace llm_sandbox {

enum class Style { kBold, kDim, kGood, kBad, kWarning };

/// Colours a text where `fd` is a terminal that wants colours (NO_COLOR unset, TERM not "dumb"); elsewhere leaves it
/// alone.
std::string styled(int fd, Style style, std::string_view text);

/// Whether `fd` is a terminal.
bool is_terminal(int fd);

/// Writes everything; false when the other side is gone.
bool write_all(int fd, std::string_view text);

/// Writes to stdout; ends the process with status 1 and a sentence on stderr where that fails.
void print(std::string_view text);

/// A line on stderr that the next one replaces; nothing at all where stderr is no terminal.
class StatusLine {
 public:
  void show(std::string_view text);
  void clear();
  ~StatusLine() { clear(); }

 private:
  bool shown_ = false;
};

}  // namespace llm_sandbox
