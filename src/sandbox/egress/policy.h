#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/egress/address.h"
#include "sandbox/egress/host.h"
#include "sandbox/runtime_config.h"

namespace llm_sandbox {

/// An HTTP proxy of the user's own.
struct UpstreamProxy {
  egress::Destination destination;
  std::string authorization;  ///< the value of Proxy-Authorization, a secret that is never logged; empty for none
};

/// Which hosts requests go to without the user's proxies: NO_PROXY, as curl reads it. Names (and all below them),
/// "host:port", addresses, networks in CIDR notation, "*".
class NoProxyList {
 public:
  NoProxyList() = default;
  explicit NoProxyList(std::string_view value);
  bool names(const egress::Destination& destination) const;

 private:
  struct Network {
    egress::IpAddress address;
    unsigned prefix_bits = 0;
  };
  bool all_ = false;
  std::vector<egress::NamedHost> hosts_;
  std::vector<Network> networks_;
};

/// Bounds on what one EgressProxy does.
struct EgressLimits {
  size_t connections = 64;                       ///< at a time; further ones wait
  uint64_t bytes = uint64_t{4} << 30;            ///< in all, both ways
  std::chrono::milliseconds head{30'000};        ///< for a client to say what it wants
  std::chrono::milliseconds reach{30'000};       ///< to look up a host and connect to it
  std::chrono::milliseconds idle{120'000};       ///< without a byte either way
  std::chrono::milliseconds total{15 * 60'000};  ///< for one connection
};

/// What an EgressProxy lets through: public addresses on ports 80 and 443, and what the user's own settings name.
/// A value.
struct EgressPolicy {
  /// Looks up a host's addresses; blocks.
  using Resolve = std::function<Result<std::vector<egress::IpAddress>>(const std::string& host)>;

  /// With the proxies that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name (lower case goes first).
  /// kInvalidArgument for a proxy that cannot be used, naming the variable but not its value.
  static Result<EgressPolicy> from_environment(const EnvironmentLookup& lookup);

  /// Adds every host that a text (the value of a registry setting, the content of a settings file) names by URL.
  /// Not for the value of HTTP_PROXY and its like, which says nowhere that it is a proxy's.
  void allow_hosts_in(std::string_view text);

  /// Hosts that may be anywhere and, where a port is named, on that port.
  std::vector<egress::NamedHost> allowed_hosts;
  std::optional<UpstreamProxy> http_proxy;   ///< for http:// URLs
  std::optional<UpstreamProxy> https_proxy;  ///< for CONNECT
  NoProxyList no_proxy;
  EgressLimits limits;
  Resolve resolve;  ///< for tests; empty: the system's resolver

  /// The proxy that leads there; null where it is reached directly.
  const UpstreamProxy* upstream_for(const egress::Destination& destination, bool tunnel) const;
  /// Why a destination is refused by its name or port alone ("10.0.0.1 is a private address"); empty if it is not.
  std::string objection(const egress::Destination& destination) const;
  /// Why one of its addresses is refused; empty if it is not.
  std::string objection(const egress::Destination& destination, const egress::IpAddress& address,
                        const egress::OwnNetworks& own) const;
  bool allows(const egress::Destination& destination) const;
};

}  // namespace llm_sandbox
