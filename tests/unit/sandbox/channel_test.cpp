#include "sandbox/channel.h"

#include "support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

void send_raw(int fd, std::string_view bytes) {
  REQUIRE(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TEST_CASE("frames pass in both directions, in pieces too") {
  Streams streams = connected_streams();
  Channel server(std::move(streams.ours));
  Channel agent(std::move(streams.theirs));
  const std::string big(kMaxControlBytes, 'b');  // more than a socket buffers
  std::jthread writer([&] {
    CHECK(server.send(FrameType::kExec, 1, big, soon(), {}));
    CHECK(server.send(FrameType::kData, 2, "data", soon(), {}));
  });
  const auto first = agent.receive(soon(), {});
  REQUIRE(first);
  CHECK(first->payload == big);
  const auto second = agent.receive(soon(), {});
  REQUIRE(second);
  CHECK(second->id == 2);
  CHECK(second->payload == "data");
}

TEST_CASE("a payload beyond its bound is not sent, and harms nothing") {
  Streams streams = connected_streams();
  Channel server(std::move(streams.ours));
  Channel agent(std::move(streams.theirs));
  const auto refused = server.send(FrameType::kData, 1, std::string(kMaxDataBytes + 1, 'x'), soon(), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  REQUIRE(server.send(FrameType::kPing, 2, {}, soon(), {}));
  CHECK(agent.receive(soon(), {})->id == 2);
}

TEST_CASE("an agent that does not read ends a send at its deadline or on stop") {
  const std::string part(kMaxDataBytes, 'x');
  const auto send_until_failure = [&](Channel& channel, const std::function<Deadline()>& deadline,
                                      std::stop_token stop) {
    auto sent = channel.send(FrameType::kData, 1, part, deadline(), stop);
    while (sent) sent = channel.send(FrameType::kData, 1, part, deadline(), stop);
    return sent.error().code;
  };
  {
    Streams streams = connected_streams();
    Channel channel(std::move(streams.ours));
    CHECK(send_until_failure(channel, [] { return Deadline::after(50ms); }, {}) == ErrorCode::kTimeout);
    // Half a frame may be out: there is no going on.
    CHECK(channel.send(FrameType::kPing, 1, {}, soon(), {}).error().code == ErrorCode::kBackendUnavailable);
  }
  {
    Streams streams = connected_streams();
    Channel channel(std::move(streams.ours));
    std::stop_source source;
    source.request_stop();
    CHECK(send_until_failure(
              channel, [] { return soon(); }, source.get_token()) == ErrorCode::kCancelled);
  }
}

TEST_CASE("receive ends at its deadline, on stop, at the end of the stream and at nonsense") {
  Streams streams = connected_streams();
  Channel channel(std::move(streams.ours));
  CHECK(channel.receive(Deadline::after(20ms), {}).error().code == ErrorCode::kTimeout);

  std::stop_source source;
  source.request_stop();
  CHECK(channel.receive(soon(), source.get_token()).error().code == ErrorCode::kCancelled);

  SUBCASE("what is already there is taken, even late") {
    std::string frame;
    append_frame(frame, FrameType::kPong, 3, {});
    send_raw(streams.theirs.get(), frame);
    CHECK(channel.receive(Deadline::after(0ms), {})->id == 3);
  }
  SUBCASE("end of the stream, in the middle of a frame") {
    send_raw(streams.theirs.get(), std::string_view("\x05\0\0\0\x40\0\0\0\0\0\0\0ab", 14));
    streams.theirs.reset();
    CHECK(channel.receive(soon(), {}).error().code == ErrorCode::kBackendUnavailable);
    CHECK(channel.send(FrameType::kPing, 1, {}, soon(), {}).error().code == ErrorCode::kBackendUnavailable);
  }
  SUBCASE("nonsense") {
    send_raw(streams.theirs.get(), "HTTP/1.1 400 Bad Request\r\n\r\n");
    CHECK(channel.receive(soon(), {}).error().code == ErrorCode::kProtocol);
    CHECK(channel.receive(soon(), {}).error().code == ErrorCode::kProtocol);
  }
  SUBCASE("closed") {
    channel.close();
    channel.close();
    CHECK(channel.receive(soon(), {}).error().code == ErrorCode::kBackendUnavailable);
    CHECK(channel.send(FrameType::kPing, 1, {}, soon(), {}).error().code == ErrorCode::kBackendUnavailable);
  }
}

TEST_CASE("a frame that comes in drops does not outlive the deadline") {
  Streams streams = connected_streams();
  Channel channel(std::move(streams.ours));
  send_raw(streams.theirs.get(), std::string_view("\0\0\x10\0\x27\0\0\0\x01\0\0\0", 12));  // kError of 1 MiB
  std::jthread dripping([&](std::stop_token stop) {
    while (!stop.stop_requested() && send(streams.theirs.get(), "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::yield();
  });
  const auto frame = channel.receive(Deadline::after(50ms), {});
  channel.close();
  REQUIRE_FALSE(frame);
  CHECK(frame.error().code == ErrorCode::kTimeout);
}
