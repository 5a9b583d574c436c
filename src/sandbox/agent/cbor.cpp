#include "sandbox/agent/cbor.h"

#include <limits>
#include <optional>

namespace llm_sandbox {
namespace {

// RFC 8949, section 3.1: the major types in use.
constexpr unsigned kMajorUnsigned = 0;
constexpr unsigned kMajorNegative = 1;
constexpr unsigned kMajorBytes = 2;
constexpr unsigned kMajorText = 3;
constexpr unsigned kMajorArray = 4;
constexpr unsigned kMajorMap = 5;
constexpr unsigned kMajorSimple = 7;
constexpr uint64_t kFalse = 20;
constexpr uint64_t kTrue = 21;

constexpr uint64_t kLargestSigned = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

}  // namespace

CborWriter::CborWriter(size_t fields) { head(kMajorMap, fields); }

void CborWriter::head(unsigned major, uint64_t argument) {
  const auto first = [&](unsigned low) { out_.push_back(static_cast<char>((major << 5) | low)); };
  if (argument < 24) return first(static_cast<unsigned>(argument));
  int width = 8;
  if (argument <= 0xff)
    width = 1;
  else if (argument <= 0xffff)
    width = 2;
  else if (argument <= 0xffffffff)
    width = 4;
  first(width == 1 ? 24 : width == 2 ? 25 : width == 4 ? 26 : 27);
  for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
    out_.push_back(static_cast<char>((argument >> shift) & 0xff));
}

void CborWriter::key(std::string_view name) {
  head(kMajorText, name.size());
  out_.append(name);
}

void CborWriter::bytes(std::string_view value) {
  head(kMajorBytes, value.size());
  out_.append(value);
}

void CborWriter::field(std::string_view name, uint64_t value) {
  key(name);
  head(kMajorUnsigned, value);
}

void CborWriter::field(std::string_view name, int64_t value) {
  key(name);
  if (value >= 0) return head(kMajorUnsigned, static_cast<uint64_t>(value));
  head(kMajorNegative, ~static_cast<uint64_t>(value));  // -1 - value
}

void CborWriter::field(std::string_view name, bool value) {
  key(name);
  head(kMajorSimple, value ? kTrue : kFalse);
}

void CborWriter::field(std::string_view name, std::string_view value) {
  key(name);
  bytes(value);
}

void CborWriter::field(std::string_view name, const std::vector<std::string>& value) {
  key(name);
  head(kMajorArray, value.size());
  for (const auto& item : value) bytes(item);
}

/// Reads items one after the other; every read fails at the end of the bytes.
class CborMap::Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }

  struct Head {
    unsigned major;
    uint64_t argument;
  };
  std::optional<Head> head() {
    if (rest_.empty()) return std::nullopt;
    const unsigned first = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    const unsigned low = first & 0x1f;
    if (low < 24) return Head{first >> 5, low};
    if (low > 27) return std::nullopt;  // reserved, or of indefinite length
    const size_t width = size_t{1} << (low - 24);
    if (rest_.size() < width) return std::nullopt;
    uint64_t argument = 0;
    for (size_t i = 0; i < width; ++i) argument = argument << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(width);
    return Head{first >> 5, argument};
  }

  std::optional<std::string_view> take(uint64_t length) {
    if (length > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(length));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::optional<std::string_view> string() {
    const auto start = head();
    if (!start || (start->major != kMajorBytes && start->major != kMajorText)) return std::nullopt;
    return take(start->argument);
  }

  std::optional<Value> value() {
    const auto start = head();
    if (!start) return std::nullopt;
    switch (start->major) {
      case kMajorUnsigned:
        return Value{Kind::kUnsigned, start->argument};
      case kMajorNegative:
        return Value{Kind::kNegative, start->argument};
      case kMajorSimple:
        if (start->argument != kFalse && start->argument != kTrue) return std::nullopt;
        return Value{Kind::kBool, start->argument == kTrue ? uint64_t{1} : uint64_t{0}};
      case kMajorBytes:
      case kMajorText: {
        const auto bytes = take(start->argument);
        return bytes ? std::optional(Value{Kind::kString, 0, *bytes}) : std::nullopt;
      }
      case kMajorArray: {
        const std::string_view items = rest_;
        for (uint64_t i = 0; i < start->argument; ++i)
          if (!string()) return std::nullopt;
        return Value{Kind::kList, start->argument, items.substr(0, items.size() - rest_.size())};
      }
      default:
        return std::nullopt;
    }
  }

 private:
  std::string_view rest_;
};

Result<CborMap> CborMap::parse(std::string_view bytes) {
  const auto malformed = [](std::string_view why) {
    return fail(ErrorCode::kProtocol, "malformed control frame: " + std::string(why));
  };
  Cursor cursor(bytes);
  const auto start = cursor.head();
  if (!start || start->major != kMajorMap) return malformed("not a map");
  if (start->argument > kMaxFields) return malformed("too many fields");
  CborMap map;
  for (uint64_t i = 0; i < start->argument; ++i) {
    const auto key = cursor.string();
    if (!key) return malformed("a key is not a string");
    const auto value = cursor.value();
    if (!value) return malformed("a value is cut short or of a kind that is not in use");
    if (!map.values_.emplace(*key, *value).second) return malformed("a key stands twice");
  }
  if (!cursor.at_end()) return malformed("bytes after its end");
  return map;
}

const CborMap::Value* CborMap::find(std::string_view key, Kind kind) const {
  const auto found = values_.find(key);
  return found != values_.end() && found->second.kind == kind ? &found->second : nullptr;
}

bool CborMap::get(std::string_view key, uint64_t& value) const {
  const Value* found = find(key, Kind::kUnsigned);
  if (found) value = found->number;
  return found != nullptr;
}

bool CborMap::get(std::string_view key, int64_t& value) const {
  if (const Value* found = find(key, Kind::kUnsigned); found && found->number <= kLargestSigned) {
    value = static_cast<int64_t>(found->number);
    return true;
  }
  if (const Value* found = find(key, Kind::kNegative); found && found->number <= kLargestSigned) {
    value = -1 - static_cast<int64_t>(found->number);
    return true;
  }
  return false;
}

bool CborMap::get(std::string_view key, bool& value) const {
  const Value* found = find(key, Kind::kBool);
  if (found) value = found->number != 0;
  return found != nullptr;
}

bool CborMap::get(std::string_view key, std::string& value) const {
  const Value* found = find(key, Kind::kString);
  if (found) value = found->bytes;
  return found != nullptr;
}

bool CborMap::get(std::string_view key, std::vector<std::string>& value) const {
  const Value* found = find(key, Kind::kList);
  if (!found) return false;
  Cursor items(found->bytes);
  for (uint64_t i = 0; i < found->number; ++i) value.emplace_back(*items.string());  // parse() has walked them
  return true;
}

}  // namespace llm_sandbox
