#include "cli/terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace llm_sandbox {
namespace {

const char* code_of(Style style) {
  switch (style) {
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kBad:
      return "\x1b[31m";
    case Style::kWarning:
      return "\x1b[33m";
  }
  return "";
}

bool wants_colour(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return is_terminal(fd) && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

bool is_terminal(int fd) { return isatty(fd) == 1; }

std::string styled(int fd, Style style, std::string_view text) {
  if (!wants_colour(fd)) return std::string(text);
  return code_of(style) + std::string(text) + "\x1b[0m";
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void print(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return;
  write_all(STDERR_FILENO, "llm-sandbox: " + errno_error("cannot write to stdout", errno).sentence + "\n");
  std::exit(1);
}

void StatusLine::show(std::string_view text) {
  if (!is_terminal(STDERR_FILENO)) return;
  clear();
  write_all(STDERR_FILENO, styled(STDERR_FILENO, Style::kDim, printable(text)));
  shown_ = true;
}

void StatusLine::clear() {
  if (shown_) write_all(STDERR_FILENO, "\r\x1b[K");
  shown_ = false;
}

}  // namespace llm_sandbox
