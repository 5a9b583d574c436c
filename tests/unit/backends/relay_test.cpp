#include "sandbox/egress/relay.h"

#include <doctest/doctest.h>

#include "sandbox/egress/proxy.h"
#include "start_in_sandbox.h"
#include "temp_folder.h"

using namespace llm_sandbox;
using namespace llm_sandbox::test;

TEST_CASE("the relay works under the filter, over a socket in a folder that is shown read-only") {
  const TempFolder folder;
  const std::string socket = folder + "/proxy";
  const auto proxy = EgressProxy::start({}, socket).value();
  RunOptions options;
  options.files = {{std::string(kRelayPath), std::string(relay_program())}};
  options.runtime_mounts = {folder.path()};
  options.handed_over = {folder.path(), socket};
  for (const bool memory_is_held : {true, false}) {
    options.memory_is_held = memory_is_held;
    const Ran ran = run_in_sandbox(with_relay(socket, {"/usr/bin/python3", "-I", "-c", R"(
import socket
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(b'GET http://192.168.0.1/ HTTP/1.1\r\n\r\n')
print(s.recv(4096).split(b'\r\n')[0].decode())
exit(5)
)"}),
                                   options);
    CHECK(ran.err == "");
    CHECK(ran.out == "HTTP/1.1 403 192.168.0.1 is a private address\n");
    CHECK(WEXITSTATUS(ran.status) == 5);
  }
  CHECK(proxy->refused() == std::vector<std::string>{"192.168.0.1 is a private address"});
}
