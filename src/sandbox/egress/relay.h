#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llm_sandbox {

/// The static program that is the sandbox's end of an EgressProxy. To be put into the sandbox (SandboxSpec::files):
///   llm-sandbox-relay SOCKET PORT PROGRAM ARGUMENT...
/// listens on 127.0.0.1:PORT, forwards each connection to the UNIX socket, and runs PROGRAM (looked for in PATH) with
/// its own environment, streams and folder. Ends as soon as PROGRAM does, with its exit code (128 + n for signal n):
/// 127 if there is no such program, 126 if it cannot be run, 125 if the relay itself cannot work, each with a sentence
/// on stderr.
std::string_view relay_program();

/// Where the installer puts it, and its port.
constexpr std::string_view kRelayPath = "/llm-sandbox/llm-sandbox-relay";
constexpr uint16_t kRelayPort = 3128;

/// The argv that runs `program` beside a relay.
std::vector<std::string> with_relay(const std::string& socket_in_sandbox, const std::vector<std::string>& program);

}  // namespace llm_sandbox
