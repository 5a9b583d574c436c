// What a hostile client can ask a proxy for, and what a settings file can hold: through every reader of hosts. What is
// let through must be a host that other programs read in the same way, and no private address in disguise.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox/egress/policy.h"

using namespace llm_sandbox;
using namespace llm_sandbox::egress;

namespace {

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

bool is_plain(const std::string& host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

void check(const Destination& destination) {
  expect(!destination.host.empty() && destination.port != 0 && is_plain(destination.host));
  // Put together again it is the same destination.
  const auto again = parse_connect_target(destination.text());
  expect(again && *again == destination);
  const EgressPolicy policy;
  if (!policy.objection(destination).empty()) return;
  expect(destination.port == 80 || destination.port == 443);
  const auto address = address_in(destination.host);
  expect(!address || why_not_public(*address).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = parse_connect_target(text)) check(*target);
  if (const auto url = parse_http_url(text)) {
    check(url->destination);
    expect(url->path.starts_with('/'));
  }
  for (const auto& host : hosts_in(text)) check({host.host, host.port.value_or(443)});
  const NoProxyList list(text);
  list.names({"registry.example", 443});
  list.names({"192.0.2.1", 443});
  const auto policy = EgressPolicy::from_environment([&](const std::string&) { return std::string(text); });
  if (policy && policy->http_proxy) {
    expect(policy->http_proxy->authorization.find_first_of("\r\n") == std::string::npos);
    check(policy->http_proxy->destination);
  }
  return 0;
}
