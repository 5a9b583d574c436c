#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "sandbox/agent/messages.h"
#include "sandbox/limits.h"
#include "sandbox/request.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

/// A program to start in a session.
struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  std::string folder = std::string(kWorkspace);
  ExecLimits limits;
};

using OutputSink = std::function<void(Stream, std::string_view)>;

/// One sandbox in use: files in, programs, files out. Speaks the agent's protocol and holds it to the rules: answers
/// for other requests, frames out of order or data beyond what was announced end the session with kProtocol. One thread
/// at a time. After an error of kProtocol, kTimeout, kCancelled or kBackendUnavailable only close() is of use.
class Session {
 public:
  explicit Session(std::unique_ptr<Sandbox> sandbox);

  /// Runs a program to its end; its whole tree is dead when this returns. A program that cannot be started is kNotFound
  /// or kIo. On stop the tree is killed and what it printed so far has been delivered: kCancelled. The agent enforces
  /// the limits; should it not answer within two seconds of the wall clock limit, the result is a timeout all the same
  /// and the sandbox is closed.
  Result<ExitedMessage> exec(const Command& command, const OutputSink& on_output, const std::stop_token& stop);

  /// Puts a file at `path` below the workspace (or below `root`); missing folders on the way are made.
  Result<void> put_file(std::string_view path, std::string_view content, uint32_t mode = 0644,
                        std::string_view root = kWorkspace);
  Result<void> make_folder(std::string_view path, std::string_view root = kWorkspace);
  Result<void> make_symlink(std::string_view path, std::string_view target, std::string_view root = kWorkspace);

  /// All that lies below a folder, depth first, in name order; links are listed, never followed. A folder that is
  /// missing: kNotFound.
  Result<std::vector<EntryMessage>> list(std::string_view root, uint64_t max_entries, uint64_t max_depth);
  /// A regular file's bytes. kNotFound, kTooLarge (more than max_bytes), kInvalidArgument (not a regular file, or a
  /// link on the way).
  Result<std::string> get_file(std::string_view path, uint64_t max_bytes, std::string_view root = kWorkspace);

  /// Ends all that runs. May be called twice; every later call of the others is kInvalidArgument ("the session is
  /// closed").
  void close() noexcept;
  bool closed() const { return sandbox_ == nullptr; }
  Sandbox* sandbox() { return sandbox_.get(); }

 private:
  std::unique_ptr<Sandbox> sandbox_;
  uint32_t next_id_ = 1;
};

}  // namespace llm_sandbox
