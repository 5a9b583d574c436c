#include "sandbox/agent/messages.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "sandbox/agent/frame.h"

using namespace llm_sandbox;
using nlohmann::json;

namespace {

std::string cbor(const json& value) {
  const auto bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

json full_error() { return {{"error_number", 2}, {"what", "open it"}}; }

}  // namespace

TEST_CASE("messages come back as they were sent") {
  ExecMessage exec;
  exec.argv = {"python3", "-c", std::string("\xff\0 any bytes", 12), ""};
  exec.environment = std::vector<std::string>(300, "NAME=value");
  exec.folder = std::string(70'000, '/');
  exec.wall_ms = 1;
  exec.output_bytes = std::numeric_limits<uint64_t>::max();
  exec.file_bytes = 255;
  exec.open_files = 65'536;
  exec.processes = 24;
  exec.memory_bytes = uint64_t{1} << 33;
  const auto exec_back = decode<ExecMessage>(encode(exec));
  REQUIRE(exec_back);
  CHECK(exec_back->argv == exec.argv);
  CHECK(exec_back->environment == exec.environment);
  CHECK(exec_back->folder == exec.folder);
  CHECK(exec_back->wall_ms == exec.wall_ms);
  CHECK(exec_back->output_bytes == exec.output_bytes);
  CHECK(exec_back->file_bytes == exec.file_bytes);
  CHECK(exec_back->open_files == exec.open_files);
  CHECK(exec_back->processes == exec.processes);
  CHECK(exec_back->memory_bytes == exec.memory_bytes);

  const EntryMessage entry{"a/b", EntryType::kSymlink, 0777, 12, std::numeric_limits<int64_t>::min(), "../x"};
  const auto entry_back = decode<EntryMessage>(encode(entry));
  REQUIRE(entry_back);
  CHECK(entry_back->path == "a/b");
  CHECK(entry_back->type == EntryType::kSymlink);
  CHECK(entry_back->mode == 0777);
  CHECK(entry_back->size == 12);
  CHECK(entry_back->modified_ns == std::numeric_limits<int64_t>::min());
  CHECK(entry_back->target == "../x");

  const ExitedMessage exited{EndCause::kDiskLimit, 0, 9, 1, 2, 3, 4, true, false};
  const auto exited_back = decode<ExitedMessage>(encode(exited));
  REQUIRE(exited_back);
  CHECK(exited_back->cause == EndCause::kDiskLimit);
  CHECK(exited_back->signal == 9);
  CHECK(exited_back->system_us == 3);
  CHECK(exited_back->process_limit_seen);
  CHECK_FALSE(exited_back->disk_full_seen);

  PathMessage path;
  path.root = "/sandbox";
  path.path = "a/b";
  path.mode = 04755;
  path.target = "t";
  path.max_entries = 1;
  path.max_depth = 2;
  path.max_bytes = 3;
  const auto path_back = decode<PathMessage>(encode(path));
  REQUIRE(path_back);
  CHECK(path_back->root == "/sandbox");
  CHECK(path_back->mode == 04755);
  CHECK(path_back->target == "t");
  CHECK(path_back->max_depth == 2);

  CHECK(decode<ReadyMessage>(encode(ReadyMessage{1, 77}))->pid == 77);
  CHECK(decode<StartedMessage>(encode(StartedMessage{5}))->pid == 5);
  CHECK(decode<ErrorMessage>(encode(ErrorMessage{40, "loop"}))->what == "loop");
}

TEST_CASE("what we write is CBOR to another reader, and the other way round") {
  const auto read = json::from_cbor(encode(ErrorMessage{300, "it"}));
  CHECK(read["error_number"] == 300);
  CHECK(read["what"] == json::binary({'i', 't'}));
  CHECK(json::from_cbor(encode(EntryMessage{"p", EntryType::kFile, 0, 0, -70'000, ""}))["modified_ns"] == -70'000);

  json with_unknown = full_error();
  with_unknown["later"] = 1.0f > 0;
  with_unknown["list"] = {"a", "b"};
  const auto message = decode<ErrorMessage>(cbor(with_unknown));
  REQUIRE(message);
  CHECK(message->error_number == 2);
  CHECK(message->what == "open it");
}

TEST_CASE("missing keys, wrong types and values out of range are refused") {
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"error_number", "2"},
                                                                            {"error_number", -1},
                                                                            {"error_number", 4096},
                                                                            {"error_number", true},
                                                                            {"error_number", 2.0},
                                                                            {"what", 5},
                                                                            {"what", nullptr},
                                                                            {"what", {"a"}},
                                                                            {"what", {{"a", 1}}},
                                                                            {"list", {{"nested"}}}}) {
    CAPTURE(key);
    json changed = full_error();
    changed[key] = value;
    const auto message = decode<ErrorMessage>(cbor(changed));
    REQUIRE_FALSE(message);
    CHECK(message.error().code == ErrorCode::kProtocol);
  }
  json incomplete = full_error();
  incomplete.erase("what");
  CHECK_FALSE(decode<ErrorMessage>(cbor(incomplete)));

  json exited = json::from_cbor(encode(ExitedMessage{}));
  CHECK(decode<ExitedMessage>(cbor(exited)));
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"cause", 6},
                                                                            {"cause", 257},
                                                                            {"exit_code", 256},
                                                                            {"signal", 65},
                                                                            {"signal", -9},
                                                                            {"wall_us", uint64_t{1} << 63},
                                                                            {"disk_full_seen", 1}}) {
    CAPTURE(key);
    json changed = exited;
    changed[key] = value;
    CHECK_FALSE(decode<ExitedMessage>(cbor(changed)));
  }
}

TEST_CASE("malformed CBOR is refused, at every length and however deep") {
  const std::string whole = encode(ErrorMessage{2, "text"});
  for (size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(decode<ErrorMessage>(whole.substr(0, length)));
  CHECK_FALSE(decode<ErrorMessage>(whole + "x"));

  // Nested arrays, maps, tags, indefinite strings: each would overflow the stack of a recursive reader.
  for (const char byte : {'\x81', '\xa1', '\xc1', '\x7f', '\x5f', '\x9f', '\xbf', '\xff', '\xf6', '\x1f'}) {
    CHECK_FALSE(decode<ErrorMessage>(std::string(kMaxControlBytes, byte)));
    CHECK_FALSE(decode<ErrorMessage>("\xa1\x61k" + std::string(kMaxControlBytes, byte)));
  }
  CHECK_FALSE(decode<ErrorMessage>(std::string("\xbb\xff\xff\xff\xff\xff\xff\xff\xff", 9)));            // 2^64-1 fields
  CHECK_FALSE(decode<ErrorMessage>(std::string("\xa1\x61k\x5b\xff\xff\xff\xff\xff\xff\xff\xff", 12)));  // bytes
  CHECK_FALSE(decode<ErrorMessage>(std::string("\xa1\x61k\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 12)));  // items
  CHECK_FALSE(decode<ErrorMessage>(std::string("\xa2\x61k\x01\x61k\x01", 7)));                          // key twice
}
