#pragma once

#include <poll.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <list>
#include <vector>

#include "base/unique_fd.h"

namespace llm_sandbox::egress {

/// Bytes on their way in one direction.
class Stream {
 public:
  /// Whether there is room to read into, or something to write.
  bool wants_input() const { return !ended_ && begin_ == 0 && end_ < bytes_.size(); }
  bool wants_output() const { return !done_ && begin_ < end_; }
  /// Nothing more will come out of it.
  bool done() const { return done_; }

  void read_from(int fd);
  /// Hands the end of the input on, too.
  void write_to(int fd);

 private:
  std::array<char, 65536> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool ended_ = false;
  bool done_ = false;
};

/// Accepts connections and forwards each to a UNIX socket. One thread, one poll loop, all bounded.
class Forwarder {
 public:
  Forwarder(const sockaddr_un& target, UniqueFd listener) : target_(target), listener_(std::move(listener)) {}

  /// Waits once and moves what can be moved; true when `other` is readable.
  bool wait(int other);

 private:
  struct Connection {
    UniqueFd client;
    UniqueFd proxy;
    Stream to_proxy = {};
    Stream to_client = {};
    bool over = false;
  };

  void accept();
  static void move(Connection& connection, short client_events, short proxy_events);

  sockaddr_un target_;
  UniqueFd listener_;
  std::list<Connection> connections_;
  std::vector<pollfd> polled_;
  bool out_of_resources_ = false;  ///< no descriptors, say: accepting at once again would only spin
};

}  // namespace llm_sandbox::egress
