#include "sandbox/egress/relay/forwarder.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

namespace llm_sandbox::egress {
namespace {

constexpr size_t kMaxConnections = 128;
constexpr int kAcceptAgainMs = 100;

/// What to poll one end of a connection for. An end from which nothing is wanted is left out, as poll reports a
/// hang-up whether asked or not; once all that it sent has been delivered, its hang-up is of interest.
pollfd watched(int fd, const Stream& from, const Stream& to) {
  short events = 0;
  if (from.wants_input()) events |= POLLIN;
  if (to.wants_output()) events |= POLLOUT;
  return {events != 0 || from.done() ? fd : -1, events, 0};
}

bool would_block(int error_number) { return error_number == EAGAIN || error_number == EINTR; }

}  // namespace

void Stream::read_from(int fd) {
  const ssize_t count = recv(fd, bytes_.data() + end_, bytes_.size() - end_, 0);
  if (count < 0 && would_block(errno)) return;
  if (count > 0)
    end_ += static_cast<size_t>(count);
  else
    ended_ = true;  // an error, too: what was read before is still delivered
}

void Stream::write_to(int fd) {
  while (begin_ < end_) {
    const ssize_t count = send(fd, bytes_.data() + begin_, end_ - begin_, MSG_NOSIGNAL);
    if (count < 0 && would_block(errno)) return;
    if (count < 0) {
      begin_ = end_;
      ended_ = true;
      break;
    }
    begin_ += static_cast<size_t>(count);
  }
  begin_ = end_ = 0;
  if (!ended_ || done_) return;
  shutdown(fd, SHUT_WR);
  done_ = true;
}

bool Forwarder::wait(int other) {
  polled_.clear();
  polled_.push_back({other, POLLIN, 0});
  const bool room = connections_.size() < kMaxConnections && !out_of_resources_;
  polled_.push_back({room ? listener_.get() : -1, POLLIN, 0});
  for (const auto& each : connections_) {
    polled_.push_back(watched(each.client.get(), each.to_proxy, each.to_client));
    polled_.push_back(watched(each.proxy.get(), each.to_client, each.to_proxy));
  }
  if (poll(polled_.data(), polled_.size(), out_of_resources_ ? kAcceptAgainMs : -1) < 0) return false;
  out_of_resources_ = false;

  auto events = polled_.begin() + 2;
  for (auto& each : connections_) {
    const short client_events = events++->revents;
    const short proxy_events = events++->revents;
    move(each, client_events, proxy_events);
  }
  connections_.remove_if([](const Connection& each) { return each.over; });
  if (polled_[1].revents != 0) accept();
  return polled_[0].revents != 0;
}

void Forwarder::move(Connection& connection, short client_events, short proxy_events) {
  auto& [client, proxy, to_proxy, to_client, over] = connection;
  constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
  if ((client_events & kReadable) != 0 && to_proxy.wants_input()) to_proxy.read_from(client.get());
  if ((proxy_events & kReadable) != 0 && to_client.wants_input()) to_client.read_from(proxy.get());
  to_proxy.write_to(proxy.get());
  to_client.write_to(client.get());
  const bool client_gone = to_proxy.done() && (client_events & (POLLHUP | POLLERR)) != 0;
  const bool proxy_gone = to_client.done() && (proxy_events & (POLLHUP | POLLERR)) != 0;
  over = client_gone || proxy_gone || (to_proxy.done() && to_client.done());
}

void Forwarder::accept() {
  UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  out_of_resources_ = !client && !would_block(errno) && errno != ECONNABORTED;
  if (!client) return;
  UniqueFd proxy(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!proxy || connect(proxy.get(), reinterpret_cast<const sockaddr*>(&target_), sizeof target_) != 0) return;
  const int yes = 1;
  setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  connections_.push_back({std::move(client), std::move(proxy)});
}

}  // namespace llm_sandbox::egress
