#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm_sandbox::egress {

/// An IP address. The first four bytes are those of an IPv4 one.
struct IpAddress {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};

  std::string text() const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

/// The address that a host is, in every form that a resolver or another proxy takes for one: "127.0.0.1", "127.1",
/// "0x7f000001", "::1"; nullopt for a name.
std::optional<IpAddress> address_in(const std::string& host);

/// What an address is that does not lie on the public internet ("a private address"); empty for a public one. One that
/// carries another (IPv4-mapped, 6to4, NAT64, …) is what that other one is.
std::string_view why_not_public(const IpAddress& address);

/// The networks that this machine is itself part of. A public address among them still leads to what listens here, or
/// to a neighbour. A value; looks at the host once, when made.
class OwnNetworks {
 public:
  static OwnNetworks look();
  void add(const IpAddress& address, unsigned prefix_bits) { networks_.push_back({address, prefix_bits}); }
  bool contain(const IpAddress& address) const;

 private:
  struct Network {
    IpAddress address;
    unsigned prefix_bits = 0;
  };
  std::vector<Network> networks_;
};

/// The address in a socket address; nullopt for null and other families.
std::optional<IpAddress> from_sockaddr(const sockaddr* address);

/// Whether an address lies in a network; false for one of the other family.
bool lies_in(const IpAddress& address, const IpAddress& network, unsigned prefix_bits);

}  // namespace llm_sandbox::egress
