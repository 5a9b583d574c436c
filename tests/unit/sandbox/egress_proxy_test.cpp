#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <set>

#include "egress_support.h"
#include "sandbox/egress/proxy.h"
#include "support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;
using egress::IpAddress;

namespace {

IpAddress address(const char* text) { return egress::address_in(text).value(); }
const IpAddress& here() {
  static const IpAddress loopback = address("127.0.0.1");
  return loopback;
}

/// Every name leads to these addresses.
EgressPolicy::Resolve always(std::vector<IpAddress> addresses) {
  return [addresses = std::move(addresses)](const std::string&) -> Result<std::vector<IpAddress>> { return addresses; };
}

/// Lets registry.test on the server's port through, and looks up every name as this machine.
EgressPolicy policy_for(const TestServer& server) {
  EgressPolicy policy;
  policy.allow_hosts_in("http://" + server.authority("registry.test"));
  policy.resolve = always({here()});
  return policy;
}

class Proxy {
 public:
  explicit Proxy(EgressPolicy policy) : proxy_(EgressProxy::start(std::move(policy), path()).value()) {}

  Peer connect() const { return connect_to(path()); }
  /// The whole answer to a whole request.
  std::string ask(const std::string& request) const {
    Peer peer = connect();
    peer.send(request);
    return peer.receive_all();
  }
  /// A tunnel whose beginning has been read.
  Peer tunnel(const std::string& authority) const {
    Peer peer = connect();
    peer.send("CONNECT " + authority + " HTTP/1.1\r\n\r\n");
    CHECK(peer.receive_until("\r\n\r\n") == "HTTP/1.1 200 Connection established\r\n\r\n");
    return peer;
  }
  std::vector<std::string> refused() const { return proxy_->refused(); }
  void stop() { proxy_.reset(); }
  std::string path() const { return folder_.path("proxy"); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<EgressProxy> proxy_;
};

void echo(Peer& peer) {
  for (std::string bytes = peer.receive(); !bytes.empty(); bytes = peer.receive()) peer.send(bytes);
  peer.send("the end");
}

/// Waits, as a server that has nothing to say, until the other side ends.
void stay_silent(Peer& peer) {
  while (!peer.receive().empty()) continue;
}

std::string get(const std::string& authority, const std::string& path = "/") {
  return "GET http://" + authority + path + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}

std::string patterned(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + i * 7919 % 26);
  return text;
}

std::set<std::string> threads() {
  std::set<std::string> ids;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) ids.insert(entry.path().filename());
  return ids;
}

/// A look-up that takes until the test lets it go, or for good.
class Hanging {
 public:
  EgressPolicy::Resolve resolve() {
    return [state = state_](const std::string& host) -> Result<std::vector<IpAddress>> {
      std::unique_lock lock(state->mutex);
      ++state->waiting;
      state->changed.wait(lock, [&] { return state->released; });
      --state->waiting;
      return fail(ErrorCode::kNotFound, "The host " + host + " cannot be looked up.");
    };
  }
  bool waited_for() const {
    const std::lock_guard lock(state_->mutex);
    return state_->waiting > 0;
  }
  ~Hanging() {
    const std::lock_guard lock(state_->mutex);
    state_->released = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int waiting = 0;
    bool released = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

TEST_CASE("a tunnel carries bytes both ways, and the end of one way leaves the other open") {
  const TestServer server(echo);
  const Proxy proxy(policy_for(server));
  Peer peer = proxy.tunnel(server.authority("registry.test"));
  peer.send("one ");
  CHECK(peer.receive() == "one ");
  const std::string bytes = patterned(3 << 20);
  std::thread sender([&] {
    peer.send(bytes);
    peer.end_sending();
  });
  CHECK(peer.receive_all() == bytes + "the end");
  sender.join();
  CHECK(proxy.refused().empty());
}

TEST_CASE("what a client sends right behind CONNECT reaches the server, and what a server says first the client") {
  const TestServer server([](Peer& peer) {
    peer.send("welcome ");
    echo(peer);
  });
  const Proxy proxy(policy_for(server));
  Peer peer = proxy.connect();
  peer.send("CONNECT " + server.authority("registry.test") + " HTTP/1.1\r\n\r\nearly ");
  peer.end_sending();
  const std::string all = body_of(peer.receive_all());
  CHECK(all.find("welcome ") == 0);
  CHECK(all.find("early ") != std::string::npos);
}

TEST_CASE("a request for an http:// URL goes on without what is meant for the proxy") {
  const TestServer server(echo_head);
  const Proxy proxy(policy_for(server));
  const std::string authority = server.authority("registry.test");
  const std::string answer =
      proxy.ask("GET http://" + authority +
                "/a%20b?c=d#e HTTP/1.1\r\nHost: elsewhere.test\r\nAccept: */*\r\n"
                "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
                "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nX-Stays: 2\r\n\r\n");
  CHECK(status_line(answer) == "HTTP/1.1 200 OK");
  CHECK(body_of(answer) ==
        "GET /a%20b?c=d HTTP/1.1\r\nAccept: */*\r\nX-Stays: 2\r\nHost: " + authority + "\r\nConnection: close\r\n\r\n");
}

TEST_CASE("bodies are passed on, whether their length is known or not") {
  const TestServer server([](Peer& peer) {
    const std::string head = peer.receive_until("\r\n\r\n");
    const bool chunked = head.find("Transfer-Encoding: chunked") != std::string::npos;
    std::string body;
    const size_t length_at = head.find("Content-Length: ");
    if (chunked)
      body = peer.receive_until("\r\n0\r\n\r\n");
    else
      while (body.size() < std::stoul(head.substr(length_at + 16))) body += peer.receive();
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + std::to_string(body.size()) + (chunked ? body : ""));
    if (!chunked) peer.send(body == patterned(body.size()) ? " same" : " different");
  });
  const Proxy proxy(policy_for(server));
  const std::string begin = "POST http://" + server.authority("registry.test") + "/ HTTP/1.1\r\n";
  const std::string body = patterned(5 << 20);
  CHECK(body_of(proxy.ask(begin + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body)) ==
        std::to_string(body.size()) + " same");
  CHECK(body_of(proxy.ask(begin + "Transfer-Encoding: chunked\r\n\r\n4\r\nwith\r\n6;x=y\r\n words\r\n0\r\n\r\n"))
            .find("with") != std::string::npos);
}

TEST_CASE("a client may ask whether its body is wanted, and a server may refuse it unread") {
  const TestServer server([](Peer& peer) {
    const std::string head = peer.receive_until("\r\n\r\n");
    if (head.find("Expect: 100-continue") != std::string::npos) {
      peer.send("HTTP/1.1 100 Continue\r\n\r\n");
      CHECK(peer.receive_until("body") == "body");
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ntaken");
      return;
    }
    peer.send("HTTP/1.1 413 Too large\r\nConnection: close\r\n\r\nrefused");
  });
  const Proxy proxy(policy_for(server));
  const std::string begin = "POST http://" + server.authority("registry.test") + "/ HTTP/1.1\r\nContent-Length: ";
  Peer polite = proxy.connect();
  polite.send(begin + "4\r\nExpect: 100-continue\r\n\r\n");
  CHECK(polite.receive_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  polite.send("body");
  CHECK(body_of(polite.receive_all()) == "taken");

  Peer hasty = proxy.connect();
  hasty.send(begin + "1000000000\r\n\r\n");
  CHECK(body_of(hasty.receive_all()) == "refused");
}

TEST_CASE("what follows a request is no second request") {
  const TestServer server([](Peer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    peer.end_sending();
    CHECK(peer.receive_all() == "");
  });
  const Proxy proxy(policy_for(server));
  const std::string request = get(server.authority("registry.test"));
  CHECK(status_line(proxy.ask(request + request)) == "HTTP/1.1 200 OK");
  CHECK(server.accepted() == 1);
}

TEST_CASE("a server's answer of any length arrives whole at many clients at a time") {
  const std::string bytes = patterned(2 << 20);
  const TestServer server([&](Peer& peer) {
    peer.receive_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + bytes);
  });
  const Proxy proxy(policy_for(server));
  std::atomic<int> whole = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 100; ++i)
    clients.emplace_back([&] {
      if (body_of(proxy.ask(get(server.authority("registry.test")))) == bytes) ++whole;
    });
  for (auto& client : clients) client.join();
  CHECK(whole == 100);
}

TEST_CASE("a refusal is a 403 whose sentence stands in the status line, in the body and in the list") {
  const TestServer server(echo);
  EgressPolicy policy = policy_for(server);
  policy.resolve = always({address("::1"), address("10.0.0.7")});
  const Proxy proxy(policy);
  const std::pair<std::string, std::string> table[] = {
      {"10.0.0.1:443", "10.0.0.1 is a private address"},
      {"0xa000001:443", "10.0.0.1 is a private address"},
      {"[::ffff:169.254.169.254]:80", "::ffff:169.254.169.254 is a link-local address"},
      {"localhost:80", "localhost is a name of this machine or its network"},
      {"evil.test:443", "evil.test (::1) is a loopback address"},
      {server.authority(), server.authority() + " is not on port 80 or 443"},
  };
  for (const auto& [authority, why] : table) {
    CAPTURE(authority);
    const std::string answer = proxy.ask("CONNECT " + authority + " HTTP/1.1\r\n\r\n");
    CHECK(status_line(answer) == "HTTP/1.1 403 " + why);
    CHECK(body_of(answer).find(why + ". ") == 0);
    CHECK(status_line(proxy.ask(get(authority))) == "HTTP/1.1 403 " + why);
  }
  CHECK(proxy.refused() ==
        std::vector<std::string>{table[0].second, table[2].second, table[3].second, table[4].second, table[5].second});
  CHECK(server.accepted() == 0);
  const std::string head = proxy.ask("HEAD http://10.0.0.1/ HTTP/1.1\r\n\r\n");
  CHECK(status_line(head) == "HTTP/1.1 403 10.0.0.1 is a private address");
  CHECK(body_of(head) == "");

  for (int i = 0; i < 100; ++i) proxy.ask("CONNECT 10.1.1." + std::to_string(i) + ":443 HTTP/1.1\r\n\r\n");
  CHECK(proxy.refused().size() == 32);
}

TEST_CASE("a name is looked up once, and only the addresses that were judged good are connected to") {
  const TestServer server(echo_head);
  std::atomic<int> lookups = 0;
  EgressPolicy policy;
  // Says something good, then something bad: DNS rebinding. Nothing public can be reached here, so the good one fails.
  policy.resolve = [&](const std::string&) -> Result<std::vector<IpAddress>> {
    if (lookups++ == 0)
      return std::vector{address("10.0.0.1"), address("::ffff:255.255.255.255"), address("2001:db8::1")};
    return std::vector{here()};
  };
  policy.limits.reach = 500ms;
  const Proxy proxy(policy);
  const std::string first = status_line(proxy.ask("CONNECT rebinding.test:443 HTTP/1.1\r\n\r\n"));
  CHECK_MESSAGE((first.starts_with("HTTP/1.1 502 The host rebinding.test:443 cannot be reached") ||
                 first.starts_with("HTTP/1.1 504 The host rebinding.test:443 could not be reached")),
                first);
  CHECK(lookups == 1);
  CHECK(status_line(proxy.ask("CONNECT rebinding.test:443 HTTP/1.1\r\n\r\n")) ==
        "HTTP/1.1 403 rebinding.test (127.0.0.1) is a loopback address");
  CHECK(lookups == 2);
}

TEST_CASE("the next address is tried where one does not answer") {
  const TestServer server(echo_head);
  EgressPolicy policy = policy_for(server);
  policy.resolve = always({address("127.0.0.99"), address("::1"), here()});
  const Proxy proxy(policy);
  CHECK(status_line(proxy.ask(get(server.authority("registry.test")))) == "HTTP/1.1 200 OK");
}

TEST_CASE("an allowed host is reached by its address, by its name and by localhost") {
  const TestServer server(echo_head);
  EgressPolicy policy;
  policy.allow_hosts_in("http://" + server.authority() + " http://" + server.authority("localhost"));
  const Proxy proxy(policy);
  CHECK(status_line(proxy.ask(get(server.authority()))) == "HTTP/1.1 200 OK");
  CHECK(status_line(proxy.ask(get(server.authority("127.1")))) == "HTTP/1.1 200 OK");
  CHECK(status_line(proxy.ask(get(server.authority("localhost")))) == "HTTP/1.1 200 OK");
  CHECK(status_line(proxy.ask(get(server.authority("127.0.0.2")))).starts_with("HTTP/1.1 403 "));
}

TEST_CASE("a host that cannot be looked up or reached is a 502 with the reason") {
  EgressPolicy policy;
  std::optional<TestServer> gone(std::in_place, echo);
  const std::string authority = gone->authority();
  gone.reset();
  policy.allow_hosts_in("http://" + authority);
  policy.resolve = [](const std::string& host) -> Result<std::vector<IpAddress>> {
    return fail(ErrorCode::kNotFound, "The host " + host + " cannot be looked up: no such name.");
  };
  const Proxy proxy(policy);
  CHECK(status_line(proxy.ask("CONNECT missing.test:443 HTTP/1.1\r\n\r\n")) ==
        "HTTP/1.1 502 The host missing.test cannot be looked up: no such name");
  CHECK(status_line(proxy.ask("CONNECT " + authority + " HTTP/1.1\r\n\r\n")) ==
        "HTTP/1.1 502 The host " + authority + " cannot be reached: Connection refused");
  CHECK(status_line(proxy.ask(get(authority))) ==
        "HTTP/1.1 502 The host " + authority + " cannot be reached: Connection refused");
  CHECK(proxy.refused().empty());
}

TEST_CASE("a host that does not answer in time is a 504") {
  Hanging hanging;
  EgressPolicy policy;
  policy.resolve = hanging.resolve();
  policy.limits.reach = 100ms;

  // A server whose queue of connections is full drops what comes next.
  const UniqueFd full(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  REQUIRE(bind(full.get(), reinterpret_cast<sockaddr*>(&where), size) == 0);
  REQUIRE(listen(full.get(), 0) == 0);
  REQUIRE(getsockname(full.get(), reinterpret_cast<sockaddr*>(&where), &size) == 0);
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&where), size));
  }
  const std::string authority = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  policy.allow_hosts_in("http://" + authority);

  const Proxy proxy(policy);
  CHECK(status_line(proxy.ask("CONNECT slow.test:443 HTTP/1.1\r\n\r\n")) ==
        "HTTP/1.1 504 The host slow.test:443 could not be reached in time");
  CHECK(status_line(proxy.ask("CONNECT " + authority + " HTTP/1.1\r\n\r\n")) ==
        "HTTP/1.1 504 The host " + authority + " could not be reached in time");
}

TEST_CASE("nonsense is a 400") {
  const Proxy proxy(EgressPolicy{});
  for (const std::string request :
       {"nonsense\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET https://a.test/ HTTP/1.1\r\n\r\n",
        "GET http://a.test/ HTTP/9.9\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n", "CONNECT a.test HTTP/1.1\r\n\r\n",
        "CONNECT a.test:99999 HTTP/1.1\r\n\r\n", "CONNECT http://a.test/ HTTP/1.1\r\n\r\n",
        "GET http://user:password@a.test/ HTTP/1.1\r\n\r\n", "GET http://a.test/ HTTP/1.1\r\nno colon\r\n\r\n",
        "POST http://a.test/ HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST http://a.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST http://a.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    CAPTURE(request);
    CHECK(status_line(proxy.ask(request)).starts_with("HTTP/1.1 400 "));
  }
  CHECK(status_line(proxy.ask("GET http://a.test/ HTTP/1.1\r\nX: " + std::string(17000, 'x') + "\r\n\r\n")) ==
        "HTTP/1.1 400 The request's head is larger than 16 KiB");
  Peer wordless = proxy.connect();
  wordless.end_sending();
  CHECK(wordless.receive_all() == "");
  CHECK(proxy.refused().empty());
}

TEST_CASE("clients that are slow, silent or gone are let go of") {
  const TestServer server(stay_silent);
  EgressPolicy policy = policy_for(server);
  policy.limits.head = 100ms;
  policy.limits.idle = 100ms;
  policy.limits.connections = 1;
  const Proxy proxy(policy);
  Peer slow = proxy.connect();
  slow.send("GET http://a.te");
  CHECK(status_line(slow.receive_all()) == "HTTP/1.1 408 The request's head did not arrive in time");
  Peer silent = proxy.tunnel(server.authority("registry.test"));
  CHECK(silent.receive_all() == "");
  {
    Peer gone = proxy.connect();
    gone.send("CONNECT");
  }
  CHECK(status_line(proxy.ask("CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n")).starts_with("HTTP/1.1 403 "));
}

TEST_CASE("no connection lasts longer than it may, however busy it is") {
  const TestServer server([](Peer& peer) {
    while (peer.send("x")) std::this_thread::yield();
  });
  EgressPolicy policy = policy_for(server);
  policy.limits.total = 200ms;
  const Proxy proxy(policy);
  Peer peer = proxy.tunnel(server.authority("registry.test"));
  CHECK(peer.receive_all().find_first_not_of('x') == std::string::npos);
}

TEST_CASE("a client that takes nothing does not fill the memory") {
  std::atomic<size_t> sent = 0;
  const TestServer server([&](Peer& peer) {
    const std::string block(1 << 16, 'x');
    while (peer.send(block)) sent += block.size();
  });
  EgressPolicy policy = policy_for(server);
  policy.limits.idle = 300ms;
  const Proxy proxy(policy);
  Peer peer = proxy.tunnel(server.authority("registry.test"));
  // Cut by the idle time, with only what sockets and one buffer hold on the way.
  size_t before = 0;
  CHECK(eventually([&] {
    const size_t now = sent;
    std::this_thread::sleep_for(50ms);
    return now > 0 && std::exchange(before, now) == now;
  }));
  CHECK(sent < (32U << 20));
  peer.receive_all();
}

TEST_CASE("no more bytes pass than are allowed in all") {
  const TestServer server(echo);
  EgressPolicy policy = policy_for(server);
  policy.limits.bytes = 1 << 20;
  const Proxy proxy(policy);
  const std::string authority = server.authority("registry.test");
  Peer peer = proxy.tunnel(authority);
  size_t back = 0;
  for (int i = 0; i < 100 && peer.send(std::string(1 << 14, 'x')); ++i) back += peer.receive().size();
  CHECK(back < (1U << 20));
  CHECK(status_line(proxy.ask("CONNECT " + authority + " HTTP/1.1\r\n\r\n")) ==
        "HTTP/1.1 403 No more than 1 MiB may be transferred");
  CHECK(proxy.refused().front() == "more than 1 MiB were to be transferred");
}

TEST_CASE("connections above the bound wait for their turn") {
  const TestServer server(echo);
  EgressPolicy policy = policy_for(server);
  policy.limits.connections = 2;
  const Proxy proxy(policy);
  const std::string authority = server.authority("registry.test");
  std::optional<Peer> first(proxy.tunnel(authority));
  Peer second = proxy.tunnel(authority);
  Peer third = proxy.connect();
  third.send("CONNECT " + authority + " HTTP/1.1\r\n\r\n");
  second.send("still here");
  CHECK(second.receive() == "still here");
  CHECK(server.accepted() == 2);
  first.reset();
  CHECK(third.receive_until("\r\n\r\n") == "HTTP/1.1 200 Connection established\r\n\r\n");
  CHECK(eventually([&] { return server.accepted() == 3; }));
}

TEST_CASE("a server that is gone ends the client's connection, and the other way round") {
  std::optional<TestServer> server(std::in_place, echo);
  const Proxy proxy(policy_for(*server));
  const std::string authority = server->authority("registry.test");
  { const Peer gone = proxy.tunnel(authority); }
  Peer peer = proxy.tunnel(authority);
  server.reset();
  CHECK(peer.receive_all() == "");
}

TEST_CASE("the end of the proxy cuts all connections, removes the socket and leaves no thread") {
  const TestServer server(stay_silent);
  const auto before = threads();
  std::optional<Proxy> proxy(policy_for(server));
  const std::string path = proxy->path();
  std::vector<Peer> peers;
  for (int i = 0; i < 5; ++i) peers.push_back(proxy->tunnel(server.authority("registry.test")));
  peers.push_back(proxy->connect());
  peers.back().send("GET http");
  peers.push_back(proxy->connect());
  CHECK(fs::exists(path));
  proxy->stop();
  CHECK_FALSE(fs::exists(path));
  for (auto& peer : peers) CHECK(peer.receive_all() == "");
  // The test server's own threads, one a connection, end with these.
  CHECK(eventually([&] {
    const auto now = threads();
    return std::includes(before.begin(), before.end(), now.begin(), now.end());
  }));
}

TEST_CASE("a resolver that hangs does not keep the proxy from ending") {
  Hanging hanging;
  EgressPolicy policy;
  policy.resolve = hanging.resolve();
  Proxy proxy(policy);
  Peer peer = proxy.connect();
  peer.send("CONNECT slow.test:443 HTTP/1.1\r\n\r\n");
  REQUIRE(eventually([&] { return hanging.waited_for(); }));
  proxy.stop();
  CHECK(hanging.waited_for());
  CHECK(peer.receive_all() == "");
}

TEST_CASE("the socket is its folder's owner's alone, and a path that cannot be used is an error") {
  const TemporaryFolder folder;
  const bool given_away = geteuid() == 0 && chown(folder.path().c_str(), 12345, 12345) == 0;
  const auto proxy = EgressProxy::start({}, folder.path("proxy"));
  REQUIRE(proxy);
  struct stat info {};
  REQUIRE(stat(folder.path("proxy").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(info.st_uid == (given_away ? 12345 : geteuid()));

  CHECK(EgressProxy::start({}, folder.path("proxy")).error().sentence.find("Address already in use") !=
        std::string::npos);
  CHECK(fs::exists(folder.path("proxy")));
  CHECK(EgressProxy::start({}, folder.path("missing/proxy")).error().code == ErrorCode::kIo);
  CHECK(EgressProxy::start({}, folder.path(std::string(200, 'x'))).error().code == ErrorCode::kInvalidArgument);
}

// --- the user's own proxy ---

namespace {

/// An upstream that notes the head of each request, answers CONNECT with `answer` and then speaks first.
class Upstream {
 public:
  explicit Upstream(std::string answer = "HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello ")
      : answer_(std::move(answer)), server_([this](Peer& peer) { serve(peer); }) {}

  EgressPolicy policy(const std::string& user = "user:s3cret@", const std::string& no_proxy = "") const {
    const std::string value = "http://" + user + server_.authority();
    return EgressPolicy::from_environment([=](const std::string& name) -> std::optional<std::string> {
             if (name == "HTTP_PROXY" || name == "HTTPS_PROXY") return value;
             return name == "NO_PROXY" ? std::optional(no_proxy) : std::nullopt;
           })
        .value();
  }
  std::string heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void serve(Peer& peer) {
    const std::string head = peer.receive_until("\r\n\r\n");
    {
      const std::lock_guard lock(mutex_);
      heads_ += head;
    }
    if (!head.starts_with("CONNECT")) {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfrom upstream");
      peer.end_sending();
      const std::lock_guard lock(mutex_);
      heads_ += peer.receive_all();
      return;
    }
    peer.send(answer_);
    echo(peer);
  }

  const std::string answer_;
  std::mutex mutex_;
  std::string heads_;
  TestServer server_;
};

constexpr const char* kSecret = "Proxy-Authorization: Basic dXNlcjpzM2NyZXQ=\r\n";

}  // namespace

TEST_CASE("through the user's proxy a tunnel is asked for by name, with the user's password") {
  Upstream upstream;
  EgressPolicy policy = upstream.policy();
  policy.resolve = [](const std::string& host) -> Result<std::vector<IpAddress>> {
    return fail(ErrorCode::kNotFound, host + " is not to be looked up here");
  };
  const Proxy proxy(policy);
  Peer peer = proxy.connect();
  peer.send("CONNECT Registry.Test:443 HTTP/1.1\r\nProxy-Authorization: Basic bWluZQ==\r\n\r\nearly ");
  peer.end_sending();
  CHECK(peer.receive_all() == "HTTP/1.1 200 Connection established\r\n\r\nhello early the end");
  CHECK(upstream.heads() == "CONNECT registry.test:443 HTTP/1.1\r\nHost: registry.test:443\r\n"s + kSecret + "\r\n");
}

TEST_CASE("through the user's proxy a URL stays whole, and nothing slips in behind the request") {
  Upstream upstream;
  const Proxy proxy(upstream.policy());
  const std::string smuggled = get("10.0.0.1") + "CONNECT 10.0.0.1:80 HTTP/1.1\r\n\r\n";
  CHECK(body_of(proxy.ask("GET http://Registry.Test:80/a?b HTTP/1.1\r\nHost: 10.0.0.1\r\n"
                          "Connection: Proxy-Authorization\r\nProxy-Authorization: Basic bWluZQ==\r\n\r\n" +
                          smuggled)) == "from upstream");
  CHECK(upstream.heads() ==
        "GET http://registry.test/a?b HTTP/1.1\r\nHost: registry.test\r\nConnection: close\r\n"s + kSecret + "\r\n");
  CHECK(body_of(proxy.ask("POST http://[2001:db8::1]:443/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nok" + smuggled)) ==
        "from upstream");
  const std::string heads = upstream.heads();
  CHECK(heads.find("POST http://[2001:db8::1]:443/ HTTP/1.1\r\n") != std::string::npos);
  CHECK(heads.ends_with("\r\n\r\nok"));
  CHECK(heads.find("10.0.0.1") == std::string::npos);
}

TEST_CASE("the user's proxy gets no request for what is plainly private, nor for itself") {
  Upstream upstream;
  const EgressPolicy policy = upstream.policy();
  const Proxy proxy(policy);
  for (const std::string& authority :
       {"127.0.0.1:80"s, "0x7f.1:443"s, "[::1]:80"s, "10.0.0.1:443"s, "localhost:80"s, "x.localhost:443"s,
        "registry.test:22"s, policy.http_proxy->destination.text()}) {
    CAPTURE(authority);
    CHECK(status_line(proxy.ask("CONNECT " + authority + " HTTP/1.1\r\n\r\n")).starts_with("HTTP/1.1 403 "));
    CHECK(status_line(proxy.ask(get(authority))).starts_with("HTTP/1.1 403 "));
  }
  CHECK(upstream.heads() == "");
}

TEST_CASE("what the user's proxy refuses is a 502 with its answer and without the password") {
  Upstream upstream("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
  const EgressPolicy policy = upstream.policy();
  const std::string answer = Proxy(policy).ask("CONNECT registry.test:443 HTTP/1.1\r\n\r\n");
  CHECK(status_line(answer) == "HTTP/1.1 502 The user's own proxy " + policy.http_proxy->destination.text() +
                                   " answered 407 Proxy Authentication Required for registry.test:443");
  CHECK(answer.find("s3cret") == std::string::npos);
  CHECK(answer.find("dXNlcjpzM2NyZXQ=") == std::string::npos);

  for (const std::string nonsense : {"nonsense\r\n\r\n", "", "HTTP/1.1 200 OK\r\n"}) {
    CAPTURE(nonsense);
    const TestServer bad([&](Peer& peer) {
      peer.receive_until("\r\n\r\n");
      peer.send(nonsense);
    });
    EgressPolicy to_bad;
    to_bad.https_proxy = UpstreamProxy{{"127.0.0.1", bad.port()}, ""};
    CHECK(status_line(Proxy(to_bad).ask("CONNECT registry.test:443 HTTP/1.1\r\n\r\n")).starts_with("HTTP/1.1 502 "));
  }
}

TEST_CASE("what NO_PROXY names is reached directly, and judged") {
  Upstream upstream;
  const TestServer server(echo_head);
  EgressPolicy policy = upstream.policy("", "direct.test,inner.test");
  policy.allow_hosts_in("http://" + server.authority("direct.test"));
  policy.resolve = always({here()});
  const Proxy proxy(policy);
  CHECK(status_line(proxy.ask(get(server.authority("direct.test")))) == "HTTP/1.1 200 OK");
  CHECK(server.accepted() == 1);
  CHECK(status_line(proxy.ask(get("inner.test"))) == "HTTP/1.1 403 inner.test (127.0.0.1) is a loopback address");
  CHECK(upstream.heads() == "");
}
