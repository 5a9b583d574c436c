#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <numeric>

namespace llm_sandbox {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

// Unicode 15, table 3-7 gives the ranges of the second byte.
Utf8Step utf8_step(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {1, true};
  size_t need = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 1;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 2;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 3;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  for (size_t i = 1; i <= need; ++i) {
    if (i >= bytes.size() || at(i) < low || at(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {need + 1, true};
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const size_t start = text.find_first_not_of(kBlank);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlank) - start + 1);
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string sanitize_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    result += step.valid ? bytes.substr(0, step.length) : kReplacement;
    bytes.remove_prefix(step.length);
  }
  return result;
}

std::string printable(std::string_view bytes) {
  // C1 controls, line and paragraph separators, marks that change the direction of writing, in UTF-8.
  const auto is_mark = [](std::string_view character) {
    if (character.size() == 2) return character[0] == '\xC2' && static_cast<uint8_t>(character[1]) < 0xA0;
    if (character.size() != 3 || !character.starts_with("\xE2")) return false;
    const auto second = static_cast<uint8_t>(character[1]);
    const auto third = static_cast<uint8_t>(character[2]);
    return (second == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE))) ||
           (second == 0x81 && third >= 0xA6 && third <= 0xA9);
  };
  std::string result;
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    const std::string_view character = bytes.substr(0, step.length);
    const bool control = step.length == 1 && (static_cast<uint8_t>(character[0]) < 0x20 || character[0] == 0x7F);
    if (!step.valid)
      result += kReplacement;
    else if (control || is_mark(character))
      result += '?';
    else
      result += character;
    bytes.remove_prefix(step.length);
  }
  return result;
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (!step.valid) return false;
    bytes.remove_prefix(step.length);
  }
  return true;
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string format_bytes(unsigned long long bytes) {
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char buffer[32];
  const bool whole = value == static_cast<double>(static_cast<unsigned long long>(value));
  std::snprintf(buffer, sizeof buffer, whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return buffer;
}

}  // namespace llm_sandbox
