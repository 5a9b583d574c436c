#include "sandbox/agent/messages.h"

#include <concepts>
#include <limits>
#include <type_traits>

#include "sandbox/agent/cbor.h"

namespace llm_sandbox {
namespace {

template <typename M, typename Message>
concept Is = std::same_as<std::remove_const_t<M>, Message>;

/// The values an integer may have, as seen by the decoder.
struct Range {
  uint64_t max = std::numeric_limits<int64_t>::max();
};
constexpr Range kAnyUnsigned{std::numeric_limits<uint64_t>::max()};
constexpr Range kModeBits{07777};
constexpr Range kExitCodes{255};
constexpr Range kSignals{64};
constexpr Range kErrorNumbers{4095};  // the kernel's MAX_ERRNO

// One list of fields for each message; encoding and decoding both walk it.

void each_field(Is<ReadyMessage> auto& message, auto&& field) {
  field("version", message.version);
  field("pid", message.pid);
}

void each_field(Is<ExecMessage> auto& message, auto&& field) {
  field("argv", message.argv);
  field("environment", message.environment);
  field("folder", message.folder);
  field("wall_ms", message.wall_ms, kAnyUnsigned);
  field("output_bytes", message.output_bytes, kAnyUnsigned);
  field("file_bytes", message.file_bytes, kAnyUnsigned);
  field("open_files", message.open_files, kAnyUnsigned);
  field("processes", message.processes, kAnyUnsigned);
  field("memory_bytes", message.memory_bytes, kAnyUnsigned);
}

void each_field(Is<StartedMessage> auto& message, auto&& field) { field("pid", message.pid); }

void each_field(Is<ExitedMessage> auto& message, auto&& field) {
  field("cause", message.cause, Range{static_cast<uint64_t>(EndCause::kDiskLimit)});
  field("exit_code", message.exit_code, kExitCodes);
  field("signal", message.signal, kSignals);
  field("wall_us", message.wall_us);
  field("user_us", message.user_us);
  field("system_us", message.system_us);
  field("max_rss_bytes", message.max_rss_bytes);
  field("process_limit_seen", message.process_limit_seen);
  field("disk_full_seen", message.disk_full_seen);
}

void each_field(Is<PathMessage> auto& message, auto&& field) {
  field("root", message.root);
  field("path", message.path);
  field("mode", message.mode, kModeBits);
  field("target", message.target);
  field("max_entries", message.max_entries, kAnyUnsigned);
  field("max_depth", message.max_depth, kAnyUnsigned);
  field("max_bytes", message.max_bytes, kAnyUnsigned);
}

void each_field(Is<EntryMessage> auto& message, auto&& field) {
  field("path", message.path);
  field("type", message.type, Range{static_cast<uint64_t>(EntryType::kOther)});
  field("mode", message.mode, kModeBits);
  field("size", message.size);
  field("modified_ns", message.modified_ns);
  field("target", message.target);
}

void each_field(Is<ErrorMessage> auto& message, auto&& field) {
  field("error_number", message.error_number, kErrorNumbers);
  field("what", message.what);
}

template <typename Value>
void encode_value(CborWriter& writer, const char* key, const Value& value) {
  if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, uint32_t>)
    writer.field(key, static_cast<uint64_t>(value));
  else if constexpr (std::is_same_v<Value, std::string>)
    writer.field(key, std::string_view(value));
  else
    writer.field(key, value);
}

template <typename Message>
std::string encode_message(const Message& message) {
  size_t count = 0;
  each_field(message, [&](const char*, const auto&, Range = {}) { ++count; });
  CborWriter writer(count);
  each_field(message, [&](const char* key, const auto& value, Range = {}) { encode_value(writer, key, value); });
  return writer.take();
}

bool decode_value(const CborMap& map, const char* key, uint64_t& value, Range range) {
  return map.get(key, value) && value <= range.max;
}

/// Times and numbers with a sign range over all of int64_t; those with a Range of their own start at 0.
bool decode_value(const CborMap& map, const char* key, int64_t& value, Range range) {
  if (!map.get(key, value)) return false;
  return range.max == Range{}.max || (value >= 0 && static_cast<uint64_t>(value) <= range.max);
}

template <typename Small>
requires std::is_enum_v<Small> || std::same_as<Small, uint32_t>
bool decode_value(const CborMap& map, const char* key, Small& value, Range range) {
  uint64_t wide = 0;
  if (!map.get(key, wide) || wide > range.max || wide > std::numeric_limits<uint32_t>::max()) return false;
  value = static_cast<Small>(wide);
  return true;
}

template <typename Value>
requires std::same_as<Value, bool> || std::same_as<Value, std::string> || std::same_as<Value, std::vector<std::string>>
bool decode_value(const CborMap& map, const char* key, Value& value, Range) { return map.get(key, value); }

template <typename Message>
Result<Message> decode_message(std::string_view payload) {
  const auto map = CborMap::parse(payload);
  if (!map) return fail(map.error());
  Message message;
  const char* bad = nullptr;
  each_field(message, [&](const char* key, auto& value, Range range = {}) {
    if (bad == nullptr && !decode_value(*map, key, value, range)) bad = key;
  });
  if (bad != nullptr)
    return fail(ErrorCode::kProtocol, "malformed control frame: \"" + std::string(bad) + "\" is missing or not valid");
  return message;
}

}  // namespace

std::string encode(const ReadyMessage& message) { return encode_message(message); }
std::string encode(const ExecMessage& message) { return encode_message(message); }
std::string encode(const StartedMessage& message) { return encode_message(message); }
std::string encode(const ExitedMessage& message) { return encode_message(message); }
std::string encode(const PathMessage& message) { return encode_message(message); }
std::string encode(const EntryMessage& message) { return encode_message(message); }
std::string encode(const ErrorMessage& message) { return encode_message(message); }

template <typename Message>
Result<Message> decode(std::string_view payload) {
  return decode_message<Message>(payload);
}

template Result<ReadyMessage> decode(std::string_view payload);
template Result<ExecMessage> decode(std::string_view payload);
template Result<StartedMessage> decode(std::string_view payload);
template Result<ExitedMessage> decode(std::string_view payload);
template Result<PathMessage> decode(std::string_view payload);
template Result<EntryMessage> decode(std::string_view payload);
template Result<ErrorMessage> decode(std::string_view payload);

}  // namespace llm_sandbox
