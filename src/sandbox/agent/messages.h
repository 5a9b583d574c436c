#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace llm_sandbox {

/// Payloads of the control frames (frame.h), encoded as CBOR maps with the members' names as keys.
/// Decoding never trusts: wrong types, missing keys and values out of range are kProtocol; unknown keys are ignored.

constexpr uint32_t kAgentProtocolVersion = 1;

struct ReadyMessage {
  uint32_t version = kAgentProtocolVersion;
  int64_t pid = 0;
};

struct ExecMessage {
  std::vector<std::string> argv;         ///< argv[0] is looked up in the PATH of `environment` unless it has a slash
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  std::string folder;                    ///< working folder
  uint64_t wall_ms = 0;                  ///< 0: no limit
  uint64_t output_bytes = 0;             ///< stdout and stderr together; 0: no limit
  uint64_t file_bytes = 0;               ///< RLIMIT_FSIZE; 0: unchanged
  uint64_t open_files = 0;               ///< RLIMIT_NOFILE; 0: unchanged
  uint64_t processes = 0;                ///< RLIMIT_NPROC; 0: unchanged
  uint64_t memory_bytes = 0;             ///< RLIMIT_DATA for each process, and the watch over the sum; 0: none
};

struct StartedMessage {
  int64_t pid = 0;
};

/// Why the agent thinks that the program ended.
enum class EndCause : uint8_t {
  kExited = 0,
  kTimeout = 1,
  kOutputLimit = 2,
  kMemoryLimit = 3,
  kKilled = 4,
  kDiskLimit = 5,  ///< more than kMostFiles
};

/// Files, folders and links that a tmpfs of a sandbox may hold where only the agent watches memory
/// (ExecMessage.memory_bytes): each, though empty, costs the kernel about 1 KiB.
constexpr uint64_t kMostFiles = 200'000;

struct ExitedMessage {
  EndCause cause = EndCause::kExited;
  int64_t exit_code = 0;  ///< meaningful when signal is 0
  int64_t signal = 0;
  uint64_t wall_us = 0;
  uint64_t user_us = 0;
  uint64_t system_us = 0;
  uint64_t max_rss_bytes = 0;
  bool process_limit_seen =
      false;  ///< as many processes as allowed were seen (only watched when ExecMessage.processes is set)
  bool disk_full_seen = false;  ///< no room was left in the workspace when the program ended
};

struct PathMessage {         ///< kMakeFolder, kList, kGetFile, kPutFile, kMakeSymlink
  std::string root;          ///< absolute; symbolic links in it are followed
  std::string path;          ///< below root, "" for root itself; no "..", no symbolic link in it is ever followed
  uint32_t mode = 0;         ///< permission bits for what is made
  std::string target;        ///< kMakeSymlink
  uint64_t max_entries = 0;  ///< kList: more is kError E2BIG
  uint64_t max_depth = 0;    ///< kList: deeper folders are listed, not entered
  uint64_t max_bytes = 0;    ///< kGetFile: a larger file is kError EFBIG
};

enum class EntryType : uint8_t { kFile = 0, kFolder = 1, kSymlink = 2, kOther = 3 };

struct EntryMessage {
  std::string path;  ///< below the root asked for
  EntryType type = EntryType::kFile;
  uint32_t mode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;  ///< since 1970
  std::string target;       ///< of a symbolic link
};

struct ErrorMessage {
  int64_t error_number = 0;  ///< errno
  std::string what;
};

std::string encode(const ReadyMessage&);
std::string encode(const ExecMessage&);
std::string encode(const StartedMessage&);
std::string encode(const ExitedMessage&);
std::string encode(const PathMessage&);
std::string encode(const EntryMessage&);
std::string encode(const ErrorMessage&);

/// decode<ReadyMessage>(payload), … for each message above.
template <typename Message>
Result<Message> decode(std::string_view payload);

}  // namespace llm_sandbox
