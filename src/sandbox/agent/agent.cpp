#include "sandbox/agent/agent.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace llm_sandbox::agent {

Agent::Agent(UniqueFd in, UniqueFd out, UniqueFd child_signals)
    : in_(std::move(in)), out_(std::move(out)), child_signals_(std::move(child_signals)) {}

void Agent::run() {
  outbox_.push_message(FrameType::kReady, 0, ReadyMessage{kAgentProtocolVersion, getpid()});
  while (outbox_.flush(out_.get())) {
    wait();
    if (input_waits_ && !take_in()) break;
    advance();
  }
  if (program_) program_->destroy();
}

void Agent::advance() {
  if (program_ && !program_->advance(outbox_)) program_.reset();
  if (download_ && outbox_.has_room() && !download_->advance(outbox_)) download_.reset();
}

void Agent::wait() {
  const auto streams = program_ ? program_->readable(outbox_) : std::array{-1, -1};
  Deadline deadline = program_ ? program_->next_moment() : Deadline::never();
  if (download_ && outbox_.has_room()) deadline = Deadline::after({});
  std::array<pollfd, 5> set{{{outbox_.overfull() ? -1 : in_.get(), POLLIN, 0},
                             {outbox_.empty() ? -1 : out_.get(), POLLOUT, 0},
                             {child_signals_.get(), POLLIN, 0},
                             {streams[0], POLLIN, 0},
                             {streams[1], POLLIN, 0}}};
  input_waits_ = poll(set.data(), set.size(), deadline.poll_timeout()) > 0 && set[0].revents != 0;
  if (set[2].revents == 0) return;
  // Which child it was does not matter: all that died are reaped together.
  signalfd_siginfo ignored;
  while (read(child_signals_.get(), &ignored, sizeof ignored) > 0) {
  }
}

/// False at the end of the stream and at a frame that makes no sense.
bool Agent::take_in() {
  static std::array<char, kMaxDataBytes> buffer;
  const ssize_t count = read(in_.get(), buffer.data(), buffer.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  parser_.feed({buffer.data(), static_cast<size_t>(count)});
  while (true) {
    const auto frame = parser_.next();
    if (!frame) return false;
    if (!*frame) return true;
    if (!handle(**frame)) return false;
  }
}

bool Agent::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kExec:
      exec(frame);
      return true;
    case FrameType::kKill:
      if (program_ && program_->id() == frame.id) program_->stop(EndCause::kKilled);
      return true;  // else it has ended by itself meanwhile
    case FrameType::kPutFile:
      begin_upload(frame);
      return true;
    case FrameType::kData:
      take_data(frame);
      return true;
    case FrameType::kEnd:
      end_upload(frame);
      return true;
    case FrameType::kMakeFolder:
      answer(frame, make_folder);
      return true;
    case FrameType::kMakeSymlink:
      answer(frame, make_symlink);
      return true;
    case FrameType::kList:
    case FrameType::kGetFile:
      begin_download(frame);
      return true;
    case FrameType::kPing:
      outbox_.push(FrameType::kPong, frame.id);
      return true;
    default:
      return false;  // a frame that only agents send
  }
}

void Agent::exec(const Frame& frame) {
  if (program_) return outbox_.push_error(frame.id, {EBUSY, "another program is running"});
  const auto message = decode<ExecMessage>(frame.payload);
  if (!message) return outbox_.push_error(frame.id, {EBADMSG, message.error().sentence});
  auto program = Program::start(frame.id, *message);
  if (!program) return outbox_.push_error(frame.id, std::move(program.error()));
  outbox_.push_message(FrameType::kStarted, frame.id, StartedMessage{program->pid()});
  program_.emplace(std::move(*program));
}

void Agent::begin_upload(const Frame& frame) {
  if (upload_) return outbox_.push_error(frame.id, {EBUSY, "another file is being put"});
  const auto message = decode<PathMessage>(frame.payload);
  if (!message) return outbox_.push_error(frame.id, {EBADMSG, message.error().sentence});
  auto upload = Upload::begin(frame.id, *message);
  if (!upload) return outbox_.push_error(frame.id, std::move(upload.error()));
  upload_.emplace(std::move(*upload));
}

void Agent::take_data(const Frame& frame) {
  if (!upload_ || upload_->id() != frame.id) return;  // of an upload that has failed and was told so
  auto written = upload_->write(frame.payload);
  if (written) return;
  upload_.reset();
  outbox_.push_error(frame.id, std::move(written.error()));
}

void Agent::end_upload(const Frame& frame) {
  if (!upload_ || upload_->id() != frame.id) return;
  auto finished = upload_->finish();
  upload_.reset();
  if (!finished) return outbox_.push_error(frame.id, std::move(finished.error()));
  outbox_.push(FrameType::kDone, frame.id);
}

void Agent::begin_download(const Frame& frame) {
  if (download_) return outbox_.push_error(frame.id, {EBUSY, "another answer is being sent"});
  const auto message = decode<PathMessage>(frame.payload);
  if (!message) return outbox_.push_error(frame.id, {EBADMSG, message.error().sentence});
  auto download = frame.type == FrameType::kList ? begin_list(frame.id, *message) : begin_get(frame.id, *message);
  if (!download) return outbox_.push_error(frame.id, std::move(download.error()));
  download_ = std::move(*download);
}

void Agent::answer(const Frame& frame, Outcome<void> (*act)(const PathMessage&)) {
  const auto message = decode<PathMessage>(frame.payload);
  if (!message) return outbox_.push_error(frame.id, {EBADMSG, message.error().sentence});
  auto done = act(*message);
  if (!done) return outbox_.push_error(frame.id, std::move(done.error()));
  outbox_.push(FrameType::kDone, frame.id);
}

}  // namespace llm_sandbox::agent
