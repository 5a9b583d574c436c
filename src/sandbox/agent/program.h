#pragma once

#include <array>
#include <cstdint>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "sandbox/agent/launch.h"
#include "sandbox/agent/messages.h"
#include "sandbox/agent/outbox.h"
#include "sandbox/agent/outcome.h"
#include "sandbox/agent/process_tree.h"

namespace llm_sandbox::agent {

/// One kExec from its start to kExited: runs, is killed with all its descendants once its main process ends or a limit
/// is met, and its last output is delivered. A state machine that the agent's loop moves on with advance(); nothing in
/// it waits.
class Program {
 public:
  static Outcome<Program> start(uint32_t id, const ExecMessage& message);

  uint32_t id() const { return id_; }
  pid_t pid() const { return tree_.main(); }

  /// Does all that is due and puts what came of it into the outbox, kExited last; false once that is done.
  bool advance(Outbox& outbox);
  /// Kills the tree; the first cause stays.
  void stop(EndCause cause);
  /// Kills the tree at once and waits until it is gone, or a second has passed (a process may hang in the kernel).
  void destroy();

  /// What to wait for beside SIGCHLD: output (-1 where none is wanted now), and a moment.
  std::array<int, 2> readable(const Outbox& outbox) const;
  Deadline next_moment() const;

 private:
  enum class State {
    kRunning,   ///< its main process lives and has met no limit
    kDying,     ///< the tree is being killed
    kDraining,  ///< all are dead; what they wrote is on its way out
  };
  struct OutputStream {
    UniqueFd pipe;
    FrameType type;
    size_t left_in_pipe = 0;  ///< when kDraining: what was in it when the last process had died
  };

  Program(uint32_t id, const ExecMessage& message, Launched launched);

  void watch();
  void forward(OutputStream& stream, Outbox& outbox);
  void begin_dying();
  void begin_draining();
  bool drained() const;
  ExitedMessage result() const;

  uint32_t id_;
  ExecMessage limits_;  ///< only its numbers are kept
  State state_ = State::kRunning;
  ProcessTree tree_;
  std::array<OutputStream, 2> streams_;
  UniqueFd folder_;
  uint64_t forwarded_bytes_ = 0;

  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  Deadline wall_ = Deadline::never();
  Deadline next_watch_ = Deadline::never();
  Deadline next_kill_ = Deadline::never();

  EndCause cause_ = EndCause::kExited;
  uint64_t wall_us_ = 0;
  bool process_limit_seen_ = false;
  bool disk_full_seen_ = false;
};

}  // namespace llm_sandbox::agent
