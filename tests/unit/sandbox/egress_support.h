#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "sandbox/egress/proxy.h"

namespace llm_sandbox::testing {

/// One end of a connection, blocking; gives up after 20 s.
class Peer {
 public:
  explicit Peer(UniqueFd fd) : fd_(std::move(fd)) {
    const timeval patience{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }

  /// False once the other side takes no more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  void end_sending() { shutdown(fd_.get(), SHUT_WR); }
  void interrupt() { shutdown(fd_.get(), SHUT_RDWR); }

  /// The next bytes; empty at the end.
  std::string receive(size_t most = 65536) {
    std::string bytes(most, '\0');
    const ssize_t count = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    ended_in_time_ = count >= 0 || errno != EAGAIN;
    bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return bytes;
  }
  /// All up to and with `mark`, or up to the end.
  std::string receive_until(std::string_view mark) {
    std::string bytes;
    while (bytes.find(mark) == std::string::npos) {
      const std::string more = receive(1);
      if (more.empty()) break;
      bytes += more;
    }
    return bytes;
  }
  std::string receive_all() {
    std::string bytes;
    for (std::string more = receive(); !more.empty(); more = receive()) bytes += more;
    CHECK(ended_in_time_);
    return bytes;
  }

 private:
  UniqueFd fd_;
  bool ended_in_time_ = true;
};

/// A server on 127.0.0.1 that gives each connection to `serve`, on a thread of its own.
class TestServer {
 public:
  using Serve = std::function<void(Peer&)>;
  explicit TestServer(Serve serve) : serve_(std::move(serve)) {
    listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(listener_.get(), 128) == 0);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (auto& connection : connections_) connection.peer.interrupt();
    for (auto& connection : connections_) connection.thread.join();
  }

  uint16_t port() const { return port_; }
  std::string authority(const std::string& host = "127.0.0.1") const { return host + ":" + std::to_string(port_); }
  size_t accepted() const { return accepted_; }

 private:
  struct Connection {
    Peer peer;
    std::thread thread;
  };

  void accept_all() {
    while (true) {
      UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      ++accepted_;
      auto& connection = connections_.emplace_back(Connection{Peer(std::move(fd)), {}});
      connection.thread = std::thread([this, &peer = connection.peer] {
        serve_(peer);
        peer.interrupt();
      });
    }
  }

  const Serve serve_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<size_t> accepted_ = 0;
  std::list<Connection> connections_;
  std::thread acceptor_;
};

/// Answers each request with its own head, and ends.
inline void echo_head(Peer& peer) {
  const std::string head = peer.receive_until("\r\n\r\n");
  peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(head.size()) + "\r\n\r\n" +
            head);
}

inline Peer connect_to(const std::string& socket_path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return Peer(std::move(fd));
}

inline std::string status_line(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }
inline std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace llm_sandbox::testing
