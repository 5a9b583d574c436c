#pragma once

#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "sandbox/agent/files.h"
#include "sandbox/agent/frame.h"
#include "sandbox/agent/outbox.h"
#include "sandbox/agent/program.h"

namespace llm_sandbox::agent {

/// Serves one server over one stream: a single thread, one poll loop in which nothing waits for anything else. At most
/// one program, one upload and one download at a time; a request for a second one is EBUSY.
class Agent {
 public:
  /// Both non-blocking; `child_signals` is a signalfd of SIGCHLD.
  Agent(UniqueFd in, UniqueFd out, UniqueFd child_signals);

  /// Comes back when the server is gone or speaks nonsense; nothing that it started lives on then.
  void run();

 private:
  void advance();
  void wait();
  bool take_in();
  bool handle(const Frame& frame);
  void exec(const Frame& frame);
  void begin_upload(const Frame& frame);
  void take_data(const Frame& frame);
  void end_upload(const Frame& frame);
  void begin_download(const Frame& frame);
  /// A request that is done at once.
  void answer(const Frame& frame, Outcome<void> (*act)(const PathMessage&));

  UniqueFd in_;
  UniqueFd out_;
  UniqueFd child_signals_;
  FrameParser parser_;
  Outbox outbox_;
  std::optional<Program> program_;
  std::optional<Upload> upload_;
  std::unique_ptr<Download> download_;
  bool input_waits_ = false;
};

}  // namespace llm_sandbox::agent
