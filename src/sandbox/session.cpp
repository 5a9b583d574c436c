#include "sandbox/session.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace llm_sandbox {
namespace {

using namespace std::chrono_literals;

/// What the agent may need beyond the program's own wall clock limit to kill the tree and to report.
constexpr auto kReportGrace = 2s;
/// From a stop to the end of the tree; then the sandbox is closed.
constexpr auto kStopGrace = 1s;
constexpr auto kSendTimeout = 30s;
constexpr auto kTransferTimeout = 30s;

constexpr size_t kLongestEntryPath = 24'576;  ///< the agent enters no folder beyond 16 KiB
constexpr size_t kLongestQuote = 500;         ///< of the agent's own words
constexpr size_t kLongestLinkTarget = 4096;   ///< PATH_MAX

tl::unexpected<Error> session_closed() { return fail(ErrorCode::kInvalidArgument, "the session is closed"); }

std::string frame_name(FrameType type) { return "frame " + std::to_string(static_cast<unsigned>(type)); }

/// The agent's text in a sentence of ours: short, and without what could upset a terminal.
std::string quoted(const std::string& text) { return printable(std::string_view(text).substr(0, kLongestQuote)); }

ErrorCode code_of(int64_t error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EFBIG:
    case E2BIG:
      return ErrorCode::kTooLarge;
    case ELOOP:
    case EINVAL:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
      return ErrorCode::kInvalidArgument;
    case EBUSY:
      return ErrorCode::kBusy;
    default:
      return ErrorCode::kIo;
  }
}

/// A kError frame as an Error.
Error refusal(const Frame& frame) {
  const auto message = decode<ErrorMessage>(frame.payload);
  if (!message) return message.error();
  Error error = errno_error(quoted(message->what), static_cast<int>(message->error_number));
  error.code = code_of(message->error_number);
  return error;
}

bool lies_plainly_below(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) return false;
  const auto names = split(path, '/');
  return std::none_of(names.begin(), names.end(),
                      [](const auto& name) { return name.empty() || name == "." || name == ".."; });
}

Result<EntryMessage> checked_entry(const Frame& frame) {
  auto entry = decode<EntryMessage>(frame.payload);
  if (!entry) return entry;
  if (entry->path.size() > kLongestEntryPath || entry->target.size() > kLongestLinkTarget ||
      !lies_plainly_below(entry->path))
    return fail(ErrorCode::kProtocol, "the agent in the sandbox named an impossible path");
  return entry;
}

ExecMessage exec_message(const Command& command, const ExecLimits& limits) {
  ExecMessage message;
  message.argv = command.argv;
  message.environment = command.environment;
  message.folder = command.folder;
  message.wall_ms = static_cast<uint64_t>(limits.wall.count());
  message.output_bytes = limits.output_bytes;
  message.file_bytes = limits.file_bytes;
  message.open_files = limits.open_files;
  message.processes = limits.processes.value_or(0);
  message.memory_bytes = limits.memory_bytes.value_or(0);
  return message;
}

/// What stands in for the report of an agent that gave none in time.
ExitedMessage unreported_timeout(std::chrono::steady_clock::duration elapsed) {
  ExitedMessage message;
  message.cause = EndCause::kTimeout;
  message.signal = SIGKILL;
  message.wall_us = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
  return message;
}

/// One request: its frames out, its answers in, none of another request among them.
class Exchange {
 public:
  Exchange(Channel& channel, uint32_t id, Deadline deadline) : channel_(channel), id_(id), deadline_(deadline) {}

  Result<void> send(FrameType type, std::string_view payload, const std::stop_token& stop = {}) {
    return channel_.send(type, id_, payload, deadline_, stop);
  }

  Result<Frame> receive(const std::stop_token& stop = {}) {
    if (deadline_.passed()) return fail(ErrorCode::kTimeout, "the sandbox did not answer in time");
    auto frame = channel_.receive(deadline_, stop);
    if (frame && frame->id != id_)
      return fail(ErrorCode::kProtocol, "the agent in the sandbox answered a request that is not open");
    return frame;
  }

  /// The next answer to a request that the agent has not refused.
  Result<Frame> receive_answer() {
    auto frame = receive();
    if (frame && frame->type == FrameType::kError) return fail(refusal(*frame));
    return frame;
  }

  /// The answer to a request that yields nothing but its success.
  Result<void> receive_done() {
    const auto frame = receive_answer();
    return frame ? done(*frame) : fail(frame.error());
  }

  static Result<void> done(const Frame& frame) {
    if (frame.type != FrameType::kDone || !frame.payload.empty()) return out_of_order(frame);
    return {};
  }

  static tl::unexpected<Error> out_of_order(const Frame& frame) {
    return fail(ErrorCode::kProtocol, "the agent in the sandbox sent " + frame_name(frame.type) + " out of order");
  }

  void set_deadline(Deadline deadline) { deadline_ = deadline; }

 private:
  Channel& channel_;
  uint32_t id_;
  Deadline deadline_;
};

/// A running program, seen from here: output goes to the sink until it has ended.
class Run {
 public:
  Run(Exchange& exchange, const OutputSink& on_output, uint64_t output_bytes)
      : exchange_(exchange), on_output_(on_output), output_bytes_(output_bytes) {}

  /// kCancelled as soon as stop is requested; may be called again to go on.
  Result<ExitedMessage> follow(const std::stop_token& stop) {
    while (true) {
      if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled");
      auto frame = exchange_.receive(stop);
      if (!frame) return fail(std::move(frame.error()));
      switch (frame->type) {
        case FrameType::kError:
          if (started_) return Exchange::out_of_order(*frame);
          return fail(refusal(*frame));
        case FrameType::kStarted:
          if (started_ || !decode<StartedMessage>(frame->payload)) return Exchange::out_of_order(*frame);
          started_ = true;
          break;
        case FrameType::kStdout:
        case FrameType::kStderr:
          if (auto taken = take_output(*frame); !taken) return fail(std::move(taken.error()));
          break;
        case FrameType::kExited:
          if (!started_) return Exchange::out_of_order(*frame);
          return decode<ExitedMessage>(frame->payload);
        default:
          return Exchange::out_of_order(*frame);
      }
    }
  }

 private:
  Result<void> take_output(const Frame& frame) {
    if (!started_) return Exchange::out_of_order(frame);
    taken_bytes_ += frame.payload.size();
    if (output_bytes_ != 0 && taken_bytes_ > output_bytes_)
      return fail(ErrorCode::kProtocol, "the agent in the sandbox sent more output than was allowed");
    if (on_output_) on_output_(frame.type == FrameType::kStdout ? Stream::kStdout : Stream::kStderr, frame.payload);
    return {};
  }

  Exchange& exchange_;
  const OutputSink& on_output_;
  uint64_t output_bytes_;
  uint64_t taken_bytes_ = 0;
  bool started_ = false;
};

Result<void> put(Exchange& exchange, const PathMessage& message, std::string_view content) {
  auto sent = exchange.send(FrameType::kPutFile, encode(message));
  while (sent && !content.empty()) {
    const std::string_view part = content.substr(0, kMaxDataBytes);
    sent = exchange.send(FrameType::kData, part);
    content.remove_prefix(part.size());
  }
  if (sent) sent = exchange.send(FrameType::kEnd, {});
  return sent ? exchange.receive_done() : sent;
}

Result<void> make(Exchange& exchange, FrameType type, const PathMessage& message) {
  const auto sent = exchange.send(type, encode(message));
  return sent ? exchange.receive_done() : sent;
}

Result<std::vector<EntryMessage>> list_folder(Exchange& exchange, const PathMessage& message) {
  if (auto sent = exchange.send(FrameType::kList, encode(message)); !sent) return fail(std::move(sent.error()));
  std::vector<EntryMessage> entries;
  while (true) {
    auto frame = exchange.receive_answer();
    if (!frame) return fail(std::move(frame.error()));
    if (frame->type != FrameType::kEntry) {
      const auto done = Exchange::done(*frame);
      return done ? Result<std::vector<EntryMessage>>(std::move(entries)) : fail(done.error());
    }
    auto entry = checked_entry(*frame);
    if (!entry) return fail(std::move(entry.error()));
    if (entries.size() == message.max_entries) return Exchange::out_of_order(*frame);
    entries.push_back(std::move(*entry));
  }
}

Result<std::string> get(Exchange& exchange, const PathMessage& message) {
  if (auto sent = exchange.send(FrameType::kGetFile, encode(message)); !sent) return fail(std::move(sent.error()));
  auto first = exchange.receive_answer();
  if (!first) return fail(std::move(first.error()));
  if (first->type != FrameType::kEntry) return Exchange::out_of_order(*first);
  const auto entry = checked_entry(*first);
  if (!entry) return fail(entry.error());
  if (entry->type != EntryType::kFile || entry->path != message.path || entry->size > message.max_bytes)
    return fail(ErrorCode::kProtocol, "the agent in the sandbox announced another file than the one asked for");

  std::string content;
  while (true) {
    auto frame = exchange.receive_answer();
    if (!frame) return fail(std::move(frame.error()));
    if (frame->type != FrameType::kData) {
      const auto done = Exchange::done(*frame);
      return done ? Result<std::string>(std::move(content)) : fail(done.error());
    }
    // The file may have grown since it was announced, but never beyond what was asked for.
    if (frame->payload.size() > message.max_bytes - content.size())
      return fail(ErrorCode::kProtocol, "the agent in the sandbox sent more of a file than was asked for");
    content.append(frame->payload);
  }
}

/// After these the stream cannot be trusted any more.
bool ends_the_session(ErrorCode code) {
  return code == ErrorCode::kProtocol || code == ErrorCode::kTimeout || code == ErrorCode::kCancelled ||
         code == ErrorCode::kBackendUnavailable;
}

/// The outcome of an exchange; the agent of a session that has ended finds its stream closed, and kills what runs.
template <typename T>
Result<T> conclude(Channel& channel, Result<T> result) {
  if (!result && ends_the_session(result.error().code)) channel.close();
  return result;
}

PathMessage path_message(std::string_view root, std::string_view path) {
  PathMessage message;
  message.root = root;
  message.path = path;
  return message;
}

}  // namespace

Session::Session(std::unique_ptr<Sandbox> sandbox) : sandbox_(std::move(sandbox)) {}

Result<ExitedMessage> Session::exec(const Command& command, const OutputSink& on_output, const std::stop_token& stop) {
  if (closed()) return session_closed();
  const ExecLimits limits = sandbox_->inner_limits(command.limits);
  if (limits.wall <= 0ms) return fail(ErrorCode::kInvalidArgument, "a program needs a time limit above zero");
  const auto started = std::chrono::steady_clock::now();
  Channel& channel = sandbox_->channel();
  Exchange exchange(channel, next_id_++, Deadline::after(kSendTimeout));
  if (auto sent = exchange.send(FrameType::kExec, encode(exec_message(command, limits)), stop); !sent)
    return conclude<ExitedMessage>(channel, fail(std::move(sent.error())));

  exchange.set_deadline(Deadline::after(limits.wall + kReportGrace));
  Run run(exchange, on_output, limits.output_bytes);
  auto exited = run.follow(stop);
  if (!exited && exited.error().code == ErrorCode::kTimeout) {
    close();
    return unreported_timeout(std::chrono::steady_clock::now() - started);
  }
  if (exited || exited.error().code != ErrorCode::kCancelled) return conclude(channel, std::move(exited));

  exchange.set_deadline(Deadline::after(kStopGrace));
  if (!exchange.send(FrameType::kKill, {}) || !run.follow({})) close();
  return fail(ErrorCode::kCancelled, "the program was stopped on request");
}

Result<void> Session::put_file(std::string_view path, std::string_view content, uint32_t mode, std::string_view root) {
  if (closed()) return session_closed();
  PathMessage message = path_message(root, path);
  message.mode = mode;
  Exchange exchange(sandbox_->channel(), next_id_++, Deadline::after(kTransferTimeout));
  return conclude(sandbox_->channel(), put(exchange, message, content));
}

Result<void> Session::make_folder(std::string_view path, std::string_view root) {
  if (closed()) return session_closed();
  PathMessage message = path_message(root, path);
  message.mode = 0755;
  Exchange exchange(sandbox_->channel(), next_id_++, Deadline::after(kTransferTimeout));
  return conclude(sandbox_->channel(), make(exchange, FrameType::kMakeFolder, message));
}

Result<void> Session::make_symlink(std::string_view path, std::string_view target, std::string_view root) {
  if (closed()) return session_closed();
  PathMessage message = path_message(root, path);
  message.target = target;
  Exchange exchange(sandbox_->channel(), next_id_++, Deadline::after(kTransferTimeout));
  return conclude(sandbox_->channel(), make(exchange, FrameType::kMakeSymlink, message));
}

Result<std::vector<EntryMessage>> Session::list(std::string_view root, uint64_t max_entries, uint64_t max_depth) {
  if (closed()) return session_closed();
  PathMessage message = path_message(root, "");
  message.max_entries = max_entries;
  message.max_depth = max_depth;
  Exchange exchange(sandbox_->channel(), next_id_++, Deadline::after(kTransferTimeout));
  return conclude(sandbox_->channel(), list_folder(exchange, message));
}

Result<std::string> Session::get_file(std::string_view path, uint64_t max_bytes, std::string_view root) {
  if (closed()) return session_closed();
  PathMessage message = path_message(root, path);
  message.max_bytes = max_bytes;
  Exchange exchange(sandbox_->channel(), next_id_++, Deadline::after(kTransferTimeout));
  return conclude(sandbox_->channel(), get(exchange, message));
}

void Session::close() noexcept {
  if (sandbox_) sandbox_->close();
  sandbox_.reset();
}

}  // namespace llm_sandbox
