#include "mcp/stdio_transport.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;
using namespace std::chrono_literals;

namespace {

using Ended = StdioTransport::Ended;
constexpr auto kPatience = 20s;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Pipe make_pipe() {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    REQUIRE(count > 0);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string read_all(int fd) {
  std::string result;
  char buffer[65536];
  ssize_t count = 0;
  while ((count = read(fd, buffer, sizeof buffer)) > 0) result.append(buffer, static_cast<size_t>(count));
  return result;
}

/// The usual limits, but with patience: a slow machine must not cut a test short.
StdioLimits patient_limits() {
  StdioLimits limits;
  limits.grace = 60s;
  return limits;
}

/// A transport between two pipes whose run() is under way on a thread of its own. Each line is answered with itself.
struct Running {
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  UniqueFd stop{eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> idle = true;
  std::atomic<int> overlong = 0;
  std::vector<std::string> lines;  ///< read it after end()
  std::unique_ptr<StdioTransport> transport;
  std::future<Ended> ended;

  explicit Running(StdioLimits limits = patient_limits()) {
    transport = std::make_unique<StdioTransport>(std::move(input.read_end), std::move(output.write_end), limits);
    const auto outbox = transport->outbox();
    ended = std::async(std::launch::async, [this, outbox] {
      const StdioEvents events{[this, outbox](std::string_view line) {
                                 lines.emplace_back(line);
                                 outbox->send(std::string(line), Delivery::kReliable);
                               },
                               [this] { ++overlong; }, [this] { return idle.load(); }};
      return transport->run(events, stop.get());
    });
  }
  ~Running() {
    eventfd_write(stop.get(), 1);
    if (ended.valid()) ended.wait();
  }

  Ended end() {
    REQUIRE(ended.wait_for(kPatience) == std::future_status::ready);
    const Ended result = ended.get();
    transport.reset();  // closes the output
    return result;
  }

  Ended close_input_and_end() {
    input.write_end.reset();
    return end();
  }
};

}  // namespace

TEST_CASE("input is cut by newlines, not by reads; CRLF and empty lines are tolerated") {
  Running running;
  write_all(running.input.write_end.get(), "one\ntwo\r\n\n  \r\nthr");
  write_all(running.input.write_end.get(), "ee\nlast without newline");
  CHECK(running.close_input_and_end() == Ended::kEndOfInput);
  CHECK(running.lines == std::vector<std::string>{"one", "two", "three", "last without newline"});
  CHECK(read_all(running.output.read_end.get()) == "one\ntwo\nthree\nlast without newline\n");
}

TEST_CASE("a line of 16 MiB passes in both directions") {
  Running running;
  const std::string line(size_t{16} << 20, 'x');
  auto reader = std::async(std::launch::async, [&] { return read_all(running.output.read_end.get()); });
  write_all(running.input.write_end.get(), line + "\nafter\n");
  CHECK(running.close_input_and_end() == Ended::kEndOfInput);
  REQUIRE(running.lines.size() == 2);
  CHECK(running.lines[0] == line);
  CHECK(reader.get() == line + "\nafter\n");
}

TEST_CASE("a line over the limit is dropped, and the stream goes on") {
  StdioLimits limits = patient_limits();
  limits.line_bytes = 1000;
  Running running(limits);
  write_all(running.input.write_end.get(), std::string(1000, 'a') + "\n" + std::string(1001, 'b') + "\n");
  write_all(running.input.write_end.get(), std::string(300'000, 'c') + "\nafter\n" + std::string(2000, 'd'));
  CHECK(running.close_input_and_end() == Ended::kEndOfInput);
  CHECK(running.lines == std::vector<std::string>{std::string(1000, 'a'), "after"});
  CHECK(running.overlong == 3);
}

TEST_CASE("a client that does not read stops neither the end of input nor a stop, and costs bounded memory") {
  StdioLimits limits;
  limits.queued_bytes = 100'000;
  limits.grace = 50ms;
  Running running(limits);
  std::atomic<size_t> written = 0;
  const int fd = running.input.write_end.get();
  // The pipes and the queue fill up; then the transport takes no more.
  const std::string line = std::string(999, 'x') + "\n";
  std::atomic<bool> blocked = false;
  while (!blocked) {
    pollfd set{fd, POLLOUT, 0};
    blocked = poll(&set, 1, 300) == 0;
    if (!blocked) written += static_cast<size_t>(write(fd, line.data(), line.size()));
    REQUIRE(written < 10'000'000);
  }
  SUBCASE("end of input") { CHECK(running.close_input_and_end() == Ended::kEndOfInput); }
  SUBCASE("stop") {
    eventfd_write(running.stop.get(), 1);
    CHECK(running.end() == Ended::kStopped);
  }
  SUBCASE("the client is gone") {
    running.output.read_end.reset();
    CHECK(running.end() == Ended::kPeerGone);
  }
  SUBCASE("it reads again") {
    auto reader = std::async(std::launch::async, [&] { return read_all(running.output.read_end.get()); });
    write_all(fd, "\nend\n");
    while (poll(std::array<pollfd, 1>{pollfd{fd, POLLOUT, 0}}.data(), 1, 0) == 0) std::this_thread::yield();
    running.close_input_and_end();
    CHECK(reader.get().size() <= written + 5);
  }
}

TEST_CASE("a sender waits for room, progress does not, and the end releases both") {
  StdioLimits limits = patient_limits();
  limits.queued_bytes = 1000;
  Running running(limits);
  const auto outbox = running.transport->outbox();
  outbox->send(std::string(200'000, 'a'), Delivery::kReliable);  // more than a pipe holds
  outbox->send("progress", Delivery::kExpendable);
  auto sender = std::async(std::launch::async, [&] { outbox->send("b", Delivery::kReliable); });
  CHECK(sender.wait_for(50ms) == std::future_status::timeout);
  SUBCASE("room") {
    auto reader = std::async(std::launch::async, [&] { return read_all(running.output.read_end.get()); });
    CHECK(sender.wait_for(kPatience) == std::future_status::ready);
    running.close_input_and_end();
    CHECK(reader.get() == std::string(200'000, 'a') + "\nb\n");
  }
  SUBCASE("end") {
    eventfd_write(running.stop.get(), 1);
    CHECK(running.end() == Ended::kStopped);
    CHECK(sender.wait_for(kPatience) == std::future_status::ready);
  }
}

TEST_CASE("at the end of input, calls in flight have their grace") {
  Running running;
  const auto outbox = running.transport->outbox();
  running.idle = false;
  running.input.write_end.reset();
  CHECK(running.ended.wait_for(50ms) == std::future_status::timeout);
  outbox->send("answer", Delivery::kReliable);
  running.idle = true;
  running.transport->wake();
  CHECK(running.end() == Ended::kEndOfInput);
  CHECK(read_all(running.output.read_end.get()) == "answer\n");
}

TEST_CASE("calls that outlast their grace are given up") {
  StdioLimits limits;
  limits.grace = 50ms;
  Running running(limits);
  running.idle = false;
  CHECK(running.close_input_and_end() == Ended::kEndOfInput);
}

TEST_CASE("a client that is gone ends the run, even while nothing is written") {
  Running running;
  running.output.read_end.reset();
  CHECK(running.end() == Ended::kPeerGone);
}

TEST_CASE("sockets serve as well as pipes") {
  int fds[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  UniqueFd client(fds[0]);
  StdioTransport transport(UniqueFd(fds[1]), UniqueFd(dup(fds[1])), patient_limits());
  const auto outbox = transport.outbox();
  auto ended = std::async(std::launch::async, [&] {
    return transport.run({[&](std::string_view line) { outbox->send(std::string(line), Delivery::kReliable); }, [] {},
                          [] { return true; }},
                         -1);
  });
  const std::string line(1 << 20, 's');
  auto writer = std::async(std::launch::async, [&] {
    write_all(client.get(), line + "\n");
    shutdown(client.get(), SHUT_WR);
  });
  std::string received;
  char buffer[65536];
  while (received.size() <= line.size()) {
    const ssize_t count = read(client.get(), buffer, sizeof buffer);
    REQUIRE(count > 0);
    received.append(buffer, static_cast<size_t>(count));
  }
  CHECK(received == line + "\n");
  CHECK(ended.get() == Ended::kEndOfInput);
}
