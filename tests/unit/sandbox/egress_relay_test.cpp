#include <doctest/doctest.h>
#include <signal.h>

#include <fstream>

#include "egress_support.h"
#include "sandbox/egress/relay.h"
#include "support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

/// The embedded relay as a file, beside a socket path.
class RelayFolder {
 public:
  RelayFolder() {
    std::ofstream(relay(), std::ios::binary) << relay_program();
    fs::permissions(relay(), fs::perms(0555));
  }
  std::string relay() const { return folder_.path("relay"); }
  std::string socket() const { return folder_.path("proxy"); }

 private:
  TemporaryFolder folder_;
};

uint16_t free_port() {
  return TestServer([](Peer&) {}).port();
}

Capture run_relay(std::vector<std::string> arguments) {
  const RelayFolder folder;
  arguments.insert(arguments.begin(), "llm-sandbox-relay");
  for (auto& argument : arguments)
    if (argument == "{port}") argument = std::to_string(free_port());
  return run_and_capture({folder.relay(), arguments, {"PATH=/usr/bin:/bin", "A=1"}, {}}, soon()).value();
}

/// A Python script beside a relay, in a network namespace of its own.
class InNamespace {
 public:
  Capture python(const std::string& script) const {
    SpawnSpec spec{"/usr/bin/bwrap",
                   {"bwrap",
                    "--unshare-user",
                    "--unshare-net",
                    "--unshare-pid",
                    "--ro-bind",
                    "/",
                    "/",
                    "--proc",
                    "/proc",
                    "--dev",
                    "/dev",
                    "--die-with-parent",
                    "--",
                    folder_.relay(),
                    folder_.socket(),
                    std::to_string(kRelayPort),
                    "/usr/bin/python3",
                    "-I",
                    "-c",
                    kPrelude + script},
                   {"PATH=/usr/bin:/bin", "http_proxy=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128"},
                   {}};
    return run_and_capture(spec, Deadline::after(60s)).value();
  }
  std::string socket() const { return folder_.socket(); }

 private:
  static constexpr const char* kPrelude = R"(
import socket, struct, sys, threading, urllib.request, urllib.error
def connect():
    return socket.create_connection(('127.0.0.1', 3128), timeout=20)
def read_all(s):
    parts = []
    while part := s.recv(65536): parts.append(part)
    return b''.join(parts)
def tunnel(authority):
    s = connect()
    s.sendall(b'CONNECT ' + authority.encode() + b' HTTP/1.1\r\n\r\n')
    head = b''
    while not head.endswith(b'\r\n\r\n'): head += s.recv(1)
    assert b' 200 ' in head, head
    return s
)";
  RelayFolder folder_;
};

EgressPolicy policy_for(const TestServer& server) {
  EgressPolicy policy;
  policy.allow_hosts_in("http://" + server.authority("registry.test"));
  policy.resolve = [](const std::string&) -> Result<std::vector<egress::IpAddress>> {
    return std::vector{egress::address_in("127.0.0.1").value()};
  };
  return policy;
}

void count_and_echo(Peer& peer) {
  size_t count = 0;
  for (std::string bytes = peer.receive(); !bytes.empty(); bytes = peer.receive()) count += bytes.size();
  peer.send(std::to_string(count) + " bytes");
}

}  // namespace

TEST_CASE("the relay ends as its program does") {
  const auto ran = [](const std::string& script) { return run_relay({"/none", "{port}", "sh", "-c", script}); };
  CHECK(ran("exit 0").exit_code == 0);
  CHECK(ran("exit 7").exit_code == 7);
  CHECK(ran("kill -KILL $$").exit_code == 128 + 9);
  CHECK(ran("kill -SEGV $$").exit_code == 128 + 11);
  const Capture said = ran("echo out; echo err >&2; echo $A; pwd; cat");
  CHECK(said.out == "out\n1\n" + fs::current_path().string() + "\n");
  CHECK(said.err == "err\n");
  CHECK(run_relay({"/none", "{port}", "grep", "Sig[BI]", "/proc/self/status"}).out.find("SigBlk:\t0000000000000000") !=
        std::string::npos);
  const Capture bare = run_and_capture({"/bin/ls", {"ls", "/proc/self/fd"}, {}, {}}, soon()).value();
  CHECK(run_relay({"/none", "{port}", "ls", "/proc/self/fd"}).out == bare.out);
}

TEST_CASE("the relay does not wait for what its program leaves running") {
  const Capture ran = run_relay({"/none", "{port}", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"});
  CHECK(ran.exit_code == 0);
  REQUIRE(std::stoi(ran.out) > 1);
  CHECK(kill(std::stoi(ran.out), SIGKILL) == 0);
}

TEST_CASE("a relay that cannot work says why and has a status of its own") {
  const Capture missing = run_relay({"/none", "{port}", "no-such-program"});
  CHECK(missing.exit_code == 127);
  CHECK(missing.err.find("There is no program no-such-program") != std::string::npos);
  CHECK(run_relay({"/none", "{port}", "/etc/passwd"}).exit_code == 126);
  CHECK(run_relay({"/none", "0", "true"}).exit_code == 125);
  CHECK(run_relay({"/none", "65536", "true"}).exit_code == 125);
  CHECK(run_relay({std::string(200, 'x'), "{port}", "true"}).exit_code == 125);
  CHECK(run_relay({"/none", "{port}"}).exit_code == 125);
  const TestServer taken([](Peer&) {});
  const Capture refused = run_relay({"/none", std::to_string(taken.port()), "true"});
  CHECK(refused.exit_code == 125);
  CHECK(refused.err.find("Address already in use") != std::string::npos);
}

TEST_CASE("in a sandbox without a network a program reaches what the proxy lets it, and nothing else") {
  if (!has_pid_namespaces()) return;
  const std::string content(3 << 20, 'x');
  const TestServer server([&](Peer& peer) {
    const std::string head = peer.receive_until("\r\n\r\n");
    std::string body;
    if (head.starts_with("POST")) body = peer.receive_until("end of body");
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + (body.empty() ? content : body));
  });
  const InNamespace place;
  const auto proxy = EgressProxy::start(policy_for(server), place.socket()).value();
  const Capture ran = place.python("url = 'http://" + server.authority("registry.test") + R"(/file'
print(urllib.request.urlopen(url).read() == b'x' * (3 << 20))
print(urllib.request.urlopen(url, data=b'y' * 500000 + b'end of body').read() == b'y' * 500000 + b'end of body')
for bad in 'http://10.0.0.1/', 'https://169.254.169.254/', 'http://localhost/':
    try: urllib.request.urlopen(bad)
    except urllib.error.URLError as error: print(error)
try: socket.create_connection(('127.0.0.1', )" +
                                   std::to_string(server.port()) +
                                   R"())
except OSError as error: print(error.strerror)
try: socket.create_connection(('203.0.113.1', 80))
except OSError as error: print(error.strerror)
)");
  CHECK(ran.err == "");
  CHECK(ran.out ==
        "True\nTrue\nHTTP Error 403: 10.0.0.1 is a private address\n"
        "<urlopen error Tunnel connection failed: 403 169.254.169.254 is a link-local address>\n"
        "HTTP Error 403: localhost is a name of this machine or its network\n"
        "Connection refused\nNetwork is unreachable\n");
  CHECK(ran.exit_code == 0);
  CHECK(proxy->refused().size() == 3);
}

TEST_CASE("through the relay the end of one way leaves the other open, and clients may vanish") {
  if (!has_pid_namespaces()) return;
  const TestServer server(count_and_echo);
  const InNamespace place;
  const auto proxy = EgressProxy::start(policy_for(server), place.socket()).value();
  const Capture ran = place.python("authority = '" + server.authority("registry.test") + R"('
for i in range(20):
    s = tunnel(authority)
    s.sendall(b'x')
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()
s = tunnel(authority)
s.sendall(b'x' * 5000000)
s.shutdown(socket.SHUT_WR)
print(read_all(s).decode())
s = connect()
s.sendall(b'CONNECT ' + authority.encode() + b' HTTP/1.1\r\n\r\nearly')
s.shutdown(socket.SHUT_WR)
print(read_all(s).split(b'\r\n\r\n')[1].decode())
)");
  CHECK(ran.err == "");
  CHECK(ran.out == "5000000 bytes\n5 bytes\n");
}

TEST_CASE("more connections than relay and proxy take at a time are served in turn") {
  if (!has_pid_namespaces()) return;
  const TestServer server(count_and_echo);
  const InNamespace place;
  const auto proxy = EgressProxy::start(policy_for(server), place.socket()).value();
  const Capture ran =
      place.python("request = b'CONNECT " + server.authority("registry.test") + R"( HTTP/1.1\r\n\r\n1234'
peers = [connect() for i in range(300)]
for peer in peers:
    peer.sendall(request)
    peer.shutdown(socket.SHUT_WR)
print(sum(read_all(peer).endswith(b'\r\n\r\n4 bytes') for peer in peers))
)");
  CHECK(ran.err == "");
  CHECK(ran.out == "300\n");
}

TEST_CASE("where the proxy is gone the relay's clients see the end of their connections") {
  if (!has_pid_namespaces()) return;
  const InNamespace place;
  const Capture ran = place.python(R"(
def answer():
    try: return read_all(connect())
    except ConnectionResetError: return b''
print(answer(), answer())
)");
  CHECK(ran.err == "");
  CHECK(ran.out == "b'' b''\n");
}
