#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace llm_sandbox {

std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// What stands at the start of some bytes: one well-formed UTF-8 character, or one maximal ill-formed part.
struct Utf8Step {
  size_t length;  ///< bytes, at least 1
  bool valid;
};
/// `bytes` must not be empty.
Utf8Step utf8_step(std::string_view bytes);

/// Any bytes as valid UTF-8: each maximal ill-formed part becomes one U+FFFD (Unicode 15, section 3.9, "maximal
/// subparts").
std::string sanitize_utf8(std::string_view bytes);

/// A text of unknown origin for one line of a message: valid UTF-8 in which control characters, and those that change
/// the direction or the lines of the text around, have become '?'. Nothing in it steers a terminal.
std::string printable(std::string_view bytes);

/// Whether the bytes are well-formed UTF-8 throughout.
bool is_valid_utf8(std::string_view bytes);

/// The candidate closest to `word` by edit distance, if it is close enough to be a likely typing error; else empty.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// "1.5 MiB", "512 MiB", "64 bytes".
std::string format_bytes(unsigned long long bytes);

}  // namespace llm_sandbox
