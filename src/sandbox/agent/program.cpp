#include "sandbox/agent/program.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace llm_sandbox::agent {
namespace {

using namespace std::chrono_literals;

constexpr auto kWatchInterval = 50ms;
constexpr auto kKillInterval = 5ms;
constexpr auto kDestroyTime = 1s;

/// Longer than any run, and short enough to be added to a time point.
constexpr uint64_t kLongestWallMs = uint64_t{1000} * 3600 * 24 * 365;

bool is_full(int folder) {
  struct statvfs info {};
  if (fstatvfs(folder, &info) != 0) return false;
  return (info.f_blocks > 0 && info.f_bavail == 0) || (info.f_files > 0 && info.f_favail == 0);
}

bool holds_too_many_files(const struct statfs& info) {
  return info.f_type == TMPFS_MAGIC && info.f_files - info.f_ffree > kMostFiles;
}

/// In one of the places where a program may write: its folder and /tmp, which are one file system, and /dev/shm.
bool made_too_many_files(int folder) {
  struct statfs info {};
  if (fstatfs(folder, &info) == 0 && holds_too_many_files(info)) return true;
  return statfs("/dev/shm", &info) == 0 && holds_too_many_files(info);
}

}  // namespace

Outcome<Program> Program::start(uint32_t id, const ExecMessage& message) {
  auto launched = launch(message);
  if (!launched) return tl::unexpected(std::move(launched.error()));
  return Program(id, message, std::move(*launched));
}

Program::Program(uint32_t id, const ExecMessage& message, Launched launched)
    : id_(id),
      limits_(message),
      tree_(launched.pid),
      streams_{OutputStream{std::move(launched.out), FrameType::kStdout},
               OutputStream{std::move(launched.err), FrameType::kStderr}},
      folder_(std::move(launched.folder)) {
  limits_.argv.clear();
  limits_.environment.clear();
  if (message.wall_ms != 0)
    wall_ = Deadline::after(std::chrono::milliseconds(std::min(message.wall_ms, kLongestWallMs)));
  if (message.memory_bytes != 0 || message.processes != 0) next_watch_ = Deadline::after(kWatchInterval);
}

bool Program::advance(Outbox& outbox) {
  if (state_ != State::kDraining) {
    // Its own end comes before any limit that is met at the same time.
    tree_.reap();
    if (state_ == State::kRunning && tree_.main_status()) begin_dying();
    if (state_ == State::kRunning && wall_.passed()) stop(EndCause::kTimeout);
    if (state_ == State::kRunning && next_watch_.passed()) watch();
    if (state_ == State::kDying && next_kill_.passed() && !tree_.empty()) {
      tree_.kill_round();
      tree_.reap();
      next_kill_ = Deadline::after(kKillInterval);
    }
    if (state_ == State::kDying && tree_.empty()) begin_draining();
  }
  for (auto& stream : streams_) forward(stream, outbox);
  if (state_ != State::kDraining || !drained()) return true;
  outbox.push_message(FrameType::kExited, id_, result());
  return false;
}

void Program::stop(EndCause cause) {
  if (cause_ == EndCause::kExited && !tree_.main_status()) cause_ = cause;
  if (state_ == State::kRunning) begin_dying();
}

void Program::destroy() {
  const Deadline give_up = Deadline::after(kDestroyTime);
  sigset_t child_died;
  sigemptyset(&child_died);
  sigaddset(&child_died, SIGCHLD);
  const timespec interval{0, std::chrono::nanoseconds(kKillInterval).count()};
  for (tree_.reap(); !tree_.empty() && !give_up.passed(); tree_.reap()) {
    tree_.kill_round();
    sigtimedwait(&child_died, nullptr, &interval);
  }
}

std::array<int, 2> Program::readable(const Outbox& outbox) const {
  if (!outbox.has_room()) return {-1, -1};
  return {streams_[0].pipe.get(), streams_[1].pipe.get()};
}

Deadline Program::next_moment() const {
  switch (state_) {
    case State::kRunning:
      return wall_.earlier(next_watch_);
    case State::kDying:
      return next_kill_;
    case State::kDraining:
      break;
  }
  return Deadline::never();
}

void Program::watch() {
  next_watch_ = Deadline::after(kWatchInterval);
  const TreeUse use = tree_.measure(limits_.memory_bytes);
  // The agent is a process of the same user and counts as well (RLIMIT_NPROC).
  if (limits_.processes != 0 && use.tasks + 1 >= limits_.processes) process_limit_seen_ = true;
  if (limits_.memory_bytes == 0) return;
  if (use.memory_bytes > limits_.memory_bytes) return stop(EndCause::kMemoryLimit);
  if (made_too_many_files(folder_.get())) stop(EndCause::kDiskLimit);
}

/// At the moment of the end, before anything of it is cleared away.
void Program::begin_dying() {
  state_ = State::kDying;
  wall_us_ = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Deadline::Clock::now() - started_).count());
  disk_full_seen_ = is_full(folder_.get());
  if (limits_.processes != 0 && !tree_.empty()) {
    const uint64_t main_itself = tree_.main_status() ? 1 : 0;
    if (tree_.measure(0).tasks + main_itself + 1 >= limits_.processes) process_limit_seen_ = true;
  }
  next_kill_ = Deadline::after(0ms);
}

void Program::begin_draining() {
  state_ = State::kDraining;
  // Nobody is left to write, unless a process sent a pipe out of the tree: what it adds is not waited for.
  for (auto& stream : streams_) {
    int left = 0;
    if (stream.pipe && ioctl(stream.pipe.get(), FIONREAD, &left) == 0) stream.left_in_pipe = static_cast<size_t>(left);
    if (stream.left_in_pipe == 0) stream.pipe.reset();
  }
}

bool Program::drained() const {
  return std::none_of(streams_.begin(), streams_.end(), [](const auto& stream) { return bool(stream.pipe); });
}

void Program::forward(OutputStream& stream, Outbox& outbox) {
  static std::array<char, kMaxDataBytes> buffer;
  if (!stream.pipe || !outbox.has_room()) return;
  size_t wanted = buffer.size();
  if (state_ == State::kDraining) wanted = std::min(wanted, stream.left_in_pipe);
  const ssize_t count = read(stream.pipe.get(), buffer.data(), wanted);
  if (count < 0 && errno == EAGAIN && state_ != State::kDraining) return;
  if (count <= 0) return stream.pipe.reset();

  auto taken = static_cast<size_t>(count);
  if (state_ == State::kDraining) stream.left_in_pipe -= taken;
  const bool too_much = limits_.output_bytes != 0 && taken > limits_.output_bytes - forwarded_bytes_;
  if (too_much) taken = static_cast<size_t>(limits_.output_bytes - forwarded_bytes_);
  forwarded_bytes_ += taken;
  if (taken > 0) outbox.push(stream.type, id_, {buffer.data(), taken});
  if (state_ == State::kDraining && stream.left_in_pipe == 0) stream.pipe.reset();
  if (!too_much) return;

  // More than allowed is more than allowed, even if the program was done when it came to light.
  for (auto& each : streams_) each.pipe.reset();
  if (cause_ == EndCause::kExited) cause_ = EndCause::kOutputLimit;
  if (state_ == State::kRunning) begin_dying();
}

ExitedMessage Program::result() const {
  const int status = tree_.main_status().value_or(0);
  ExitedMessage message;
  message.cause = cause_;
  message.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  message.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  message.wall_us = wall_us_;
  message.user_us = tree_.user_us();
  message.system_us = tree_.system_us();
  message.max_rss_bytes = tree_.max_rss_bytes();
  message.process_limit_seen = process_limit_seen_;
  message.disk_full_seen = disk_full_seen_;
  return message;
}

}  // namespace llm_sandbox::agent
