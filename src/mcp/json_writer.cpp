#include "mcp/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace llm_sandbox::mcp {
namespace {

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 0xF];
  }
}

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\' && (c & 0x80) == 0; }

void append_string(std::string& out, std::string_view bytes) {
  out += '"';
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t start = at;
    while (at < bytes.size() && is_plain(bytes[at])) ++at;
    out.append(bytes, start, at - start);
    if (at == bytes.size()) break;
    if ((bytes[at] & 0x80) == 0) {
      append_escape(out, bytes[at++]);
      continue;
    }
    const Utf8Step step = utf8_step(bytes.substr(at));
    out += step.valid ? bytes.substr(at, step.length) : "\xEF\xBF\xBD";
    at += step.length;
  }
  out += '"';
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t start = out.size();
  out.resize(start + (bytes.size() + 2) / 3 * 4, '=');
  char* to = out.data() + start;
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])); };
  size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const uint32_t group = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    *to++ = kAlphabet[group >> 18];
    *to++ = kAlphabet[group >> 12 & 63];
    *to++ = kAlphabet[group >> 6 & 63];
    *to++ = kAlphabet[group & 63];
  }
  const size_t left = bytes.size() - i;
  if (left == 0) return;
  const uint32_t group = at(i) << 16 | (left == 2 ? at(i + 1) << 8 : 0);
  *to++ = kAlphabet[group >> 18];
  *to++ = kAlphabet[group >> 12 & 63];
  if (left == 2) *to = kAlphabet[group >> 6 & 63];
}

template <typename Number>
void append_number(std::string& out, Number value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_string(out_, name);
  out_ += indent_ > 0 ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view bytes) {
  before_value();
  append_string(out_, bytes);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t value) {
  before_value();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return raw("null");
  before_value();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::base64(std::string_view bytes) {
  before_value();
  out_ += '"';
  append_base64(out_, bytes);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  before_value();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) new_line();
  out_ += bracket;
  return *this;
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
  new_line();
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(has_items_.size() * indent_, ' ');
}

std::string json_string(std::string_view bytes) {
  std::string out;
  append_string(out, bytes);
  return out;
}

}  // namespace llm_sandbox::mcp
