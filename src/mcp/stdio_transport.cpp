#include "mcp/stdio_transport.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"

namespace llm_sandbox::mcp {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kKeptCapacity = 1 << 20;  ///< a buffer that grew beyond that for one line is given back
constexpr int kFirstPrivateFd = 64;        ///< out of the way of code that counts on small numbers

UniqueFd lift(int fd) {
  const int lifted = fcntl(fd, F_DUPFD_CLOEXEC, kFirstPrivateFd);
  return UniqueFd(lifted >= 0 ? lifted : fcntl(fd, F_DUPFD_CLOEXEC, 3));  // few descriptors allowed (RLIMIT_NOFILE)
}

UniqueFd make_event() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw std::system_error(errno, std::generic_category(), "eventfd");
  return event;
}

bool is_socket(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

/// Writes what fits without waiting, once poll(2) has said that something does. The descriptor stays blocking: its mode
/// is shared with whoever else has the same pipe or terminal. -1 with errno.
ssize_t write_without_waiting(int fd, bool socket, std::string_view bytes) {
  if (socket) return ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  // A pipe that polls as writable has room for PIPE_BUF bytes (pipe(7)).
  return ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
}

bool is_transient(int error) { return error == EINTR || error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<StdioStreams> take_standard_streams() {
  if (fcntl(0, F_GETFD) < 0) return fail_errno("stdin is not open", errno);
  if (fcntl(1, F_GETFD) < 0) return fail_errno("stdout is not open", errno);
  StdioStreams streams;
  streams.in = lift(0);
  streams.out = lift(1);
  if (!streams.in || !streams.out) return fail_errno("move stdin and stdout to descriptors of their own", errno);

  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail_errno("open /dev/null", errno);
  if (fcntl(2, F_GETFD) < 0 && dup2(null.get(), 2) < 0) return fail_errno("give stderr a place", errno);
  if (dup2(null.get(), 0) < 0 || dup2(2, 1) < 0) return fail_errno("move the protocol off 0 and 1", errno);
  return streams;
}

/// What waits to be written. Shared by the senders, the writing thread and run(). Thread-safe.
class StdioTransport::Queue final : public Outbox {
 public:
  explicit Queue(size_t limit) : limit_(limit), event_(make_event()), stop_writer_(make_event()) {}

  void send(std::string message, Delivery delivery) override {
    message += '\n';
    std::unique_lock lock(mutex_);
    if (delivery == Delivery::kExpendable && bytes_ >= limit_) return;
    // run()'s own thread never waits here: it takes a line only when there is room.
    if (std::this_thread::get_id() != reader_) room_.wait(lock, [&] { return bytes_ < limit_ || closed_; });
    if (closed_) return;
    bytes_ += message.size();
    messages_.push_back(std::move(message));
    lock.unlock();
    filled_.notify_one();
  }

  void set_reader(std::thread::id reader) {
    const std::lock_guard lock(mutex_);
    reader_ = reader;
  }

  /// The next message to write; nullopt once closed. Its bytes count until written() is called.
  std::optional<std::string> next() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !messages_.empty() || closed_; });
    if (closed_) return std::nullopt;
    std::string message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  void written(size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      bytes_ -= bytes;
    }
    room_.notify_all();
    wake();
  }

  /// Drops everything, now and from now on; sends and the writer return.
  void close() noexcept {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      messages_.clear();
    }
    room_.notify_all();
    filled_.notify_all();
    eventfd_write(stop_writer_.get(), 1);
    wake();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  bool has_room() const {
    const std::lock_guard lock(mutex_);
    return bytes_ < limit_;
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return bytes_ == 0;
  }

  void wake() noexcept { eventfd_write(event_.get(), 1); }
  /// Readable after wake() until clear().
  int event() const { return event_.get(); }
  void clear_event() noexcept {
    eventfd_t count = 0;
    eventfd_read(event_.get(), &count);
  }
  /// Readable once closed.
  int stop_writer() const { return stop_writer_.get(); }

 private:
  const size_t limit_;
  const UniqueFd event_;
  const UniqueFd stop_writer_;
  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable room_;
  std::condition_variable filled_;
  std::deque<std::string> messages_;
  size_t bytes_ = 0;  ///< of messages_ and of the one being written
  bool closed_ = false;
  std::thread::id reader_;
};

/// Cuts what is read into lines. One line may be over the limit: it is counted, not kept.
class StdioTransport::LineSplitter {
 public:
  enum class Item { kNone, kLine, kOverlong };

  explicit LineSplitter(size_t max_line) : max_line_(max_line) {}

  void add(std::string_view bytes) {
    if (start_ > 0) {
      buffer_.erase(0, start_);
      scanned_ -= start_;
      start_ = 0;
    }
    if (buffer_.empty() && buffer_.capacity() > kKeptCapacity) buffer_.shrink_to_fit();
    buffer_ += bytes;
  }

  /// The next whole line (CRLF and surrounding blanks cut; empty ones skipped), valid until the next add().
  Item next(std::string_view& line) {
    while (true) {
      const size_t end = buffer_.find('\n', scanned_);
      if (end == std::string::npos) return keep_rest();
      line = trim(std::string_view(buffer_).substr(start_, end - start_));
      const bool too_long = end - start_ > max_line_;
      start_ = scanned_ = end + 1;
      if (std::exchange(discarding_, false) || too_long) return Item::kOverlong;
      if (!line.empty()) return Item::kLine;
    }
  }

  /// What the input ended with, if it did not end with a newline.
  Item last(std::string_view& line) {
    line = trim(std::string_view(buffer_).substr(start_));
    start_ = scanned_ = buffer_.size();
    if (std::exchange(discarding_, false)) return Item::kOverlong;
    return line.empty() ? Item::kNone : Item::kLine;
  }

 private:
  Item keep_rest() {
    scanned_ = buffer_.size();
    if (buffer_.size() - start_ > max_line_) {
      discarding_ = true;
      start_ = buffer_.size();
    }
    return Item::kNone;
  }

  const size_t max_line_;
  std::string buffer_;
  size_t start_ = 0;    ///< of the line in hand
  size_t scanned_ = 0;  ///< up to here there is no newline
  bool discarding_ = false;
};

/// The state of one run().
class StdioTransport::Reader {
 public:
  Reader(const StdioTransport& transport, const StdioEvents& events, int stop_fd)
      : transport_(transport), events_(events), stop_fd_(stop_fd), lines_(transport.limits_.line_bytes) {}

  Ended run() {
    while (true) {
      const bool all_delivered = deliver_lines();
      if (transport_.queue_->closed()) return Ended::kPeerGone;
      if (at_end_ && all_delivered && events_.is_idle() && transport_.queue_->empty()) return Ended::kEndOfInput;
      if (const auto ended = wait(all_delivered)) return *ended;
    }
  }

 private:
  /// False when lines are left because the client has to read first.
  bool deliver_lines() {
    while (transport_.queue_->has_room()) {
      std::string_view line;
      LineSplitter::Item item = lines_.next(line);
      if (item == LineSplitter::Item::kNone && at_end_) item = lines_.last(line);
      if (item == LineSplitter::Item::kNone) return true;
      if (item == LineSplitter::Item::kLine) events_.on_line(line);
      if (item == LineSplitter::Item::kOverlong) events_.on_overlong_line();
    }
    return false;
  }

  /// Waits for the next thing to happen and takes it in; the cause if that is an end.
  std::optional<Ended> wait(bool all_delivered) {
    const bool wants_input = all_delivered && !at_end_;
    const bool watches_input = wants_input || !grace_;
    std::array<pollfd, 4> set{
        {{stop_fd_, POLLIN, 0},
         {transport_.queue_->event(), POLLIN, 0},
         {transport_.out_.get(), 0, 0},
         {watches_input ? transport_.in_.get() : -1, short(wants_input ? POLLIN : POLLRDHUP), 0}}};
    const int timeout = grace_ ? grace_->poll_timeout() : -1;
    if (poll(set.data(), set.size(), timeout) < 0) return std::nullopt;  // a signal; poll fails for nothing else here
    if (set[0].revents != 0) return Ended::kStopped;
    if (set[1].revents != 0) transport_.queue_->clear_event();
    if (set[2].revents != 0) return Ended::kPeerGone;
    if (set[3].revents != 0) take_input(wants_input);
    if (grace_ && grace_->passed()) return Ended::kEndOfInput;
    return std::nullopt;
  }

  void take_input(bool wants_input) {
    // The other end is closed while this side waits for room: the rest is still read if room comes in time.
    if (!wants_input) return start_grace();
    const ssize_t count = read(transport_.in_.get(), chunk_.data(), chunk_.size());
    if (count > 0) return lines_.add({chunk_.data(), static_cast<size_t>(count)});
    if (count < 0 && is_transient(errno)) return;
    at_end_ = true;
    start_grace();
  }

  void start_grace() {
    if (!grace_) grace_ = Deadline::after(transport_.limits_.grace);
  }

  const StdioTransport& transport_;
  const StdioEvents& events_;
  const int stop_fd_;
  LineSplitter lines_;
  std::vector<char> chunk_ = std::vector<char>(kReadBytes);
  std::optional<Deadline> grace_;
  bool at_end_ = false;
};

StdioTransport::StdioTransport(UniqueFd in, UniqueFd out, StdioLimits limits)
    : in_(std::move(in)),
      out_(std::move(out)),
      limits_(limits),
      queue_(std::make_shared<Queue>(limits.queued_bytes)),
      writer_([out = out_.get(), queue = queue_] { write_queue(out, *queue); }) {}

StdioTransport::~StdioTransport() {
  close();
  writer_.join();
}

std::shared_ptr<Outbox> StdioTransport::outbox() const { return queue_; }

void StdioTransport::wake() { queue_->wake(); }

StdioTransport::Ended StdioTransport::run(const StdioEvents& events, int stop_fd) {
  queue_->set_reader(std::this_thread::get_id());
  const Ended ended = Reader(*this, events, stop_fd).run();
  close();
  return ended;
}

void StdioTransport::close() noexcept { queue_->close(); }

void StdioTransport::write_queue(int out, Queue& queue) {
  // Of all signals: SIGPIPE then only shows as EPIPE, and the others are for the main thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  const bool socket = is_socket(out);
  while (const auto message = queue.next()) {
    std::string_view rest = *message;
    while (!rest.empty()) {
      std::array<pollfd, 2> set{{{out, POLLOUT, 0}, {queue.stop_writer(), POLLIN, 0}}};
      if (poll(set.data(), set.size(), -1) < 0 && errno != EINTR) return queue.close();
      if (set[1].revents != 0) return;
      if (set[0].revents == 0) continue;
      const ssize_t count = write_without_waiting(out, socket, rest);
      if (count < 0 && !is_transient(errno)) return queue.close();
      if (count > 0) rest.remove_prefix(static_cast<size_t>(count));
    }
    queue.written(message->size());
  }
}

}  // namespace llm_sandbox::mcp
