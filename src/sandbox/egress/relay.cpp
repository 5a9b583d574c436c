#include "sandbox/egress/relay.h"

namespace llm_sandbox {

namespace embedded {
std::string_view relay();
}

std::string_view relay_program() { return embedded::relay(); }

std::vector<std::string> with_relay(const std::string& socket_in_sandbox, const std::vector<std::string>& program) {
  std::vector<std::string> argv{std::string(kRelayPath), socket_in_sandbox, std::to_string(kRelayPort)};
  argv.insert(argv.end(), program.begin(), program.end());
  return argv;
}

}  // namespace llm_sandbox
