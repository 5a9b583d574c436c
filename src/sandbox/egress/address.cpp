#include "sandbox/egress/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

namespace llm_sandbox::egress {
namespace {

/// Even a generous site is smaller; a wider mask is an interface's peculiarity and not a neighbourhood.
constexpr unsigned kWidestV4 = 8;
constexpr unsigned kWidestV6 = 32;

struct Range {
  const char* network;
  unsigned prefix_bits;
  std::string_view what;
};

constexpr Range kV4Ranges[] = {
    {"0.0.0.0", 8, "an unspecified address"},
    {"10.0.0.0", 8, "a private address"},
    {"100.64.0.0", 10, "a shared (carrier-grade NAT) address"},
    {"127.0.0.0", 8, "a loopback address"},
    {"169.254.0.0", 16, "a link-local address"},
    {"168.63.129.16", 32, "a cloud's address for the machine itself"},
    {"172.16.0.0", 12, "a private address"},
    {"192.0.0.0", 24, "a reserved address"},
    {"192.168.0.0", 16, "a private address"},
    {"224.0.0.0", 4, "a multicast address"},
    {"255.255.255.255", 32, "a broadcast address"},
    {"240.0.0.0", 4, "a reserved address"},
};

constexpr Range kV6Ranges[] = {
    {"::", 128, "an unspecified address"},    {"::1", 128, "a loopback address"},
    {"64:ff9b:1::", 48, "a private address"},  // NAT64 of the site's own (RFC 8215), which may lead anywhere
    {"2001::", 32, "a tunnel's address"},      // Teredo
    {"fc00::", 7, "a private address"},       {"fe80::", 10, "a link-local address"},
    {"fec0::", 10, "a private address"},      {"ff00::", 8, "a multicast address"},
};

/// Networks whose addresses carry an IPv4 one from the byte `at` on.
struct Carrier {
  const char* network;
  unsigned prefix_bits;
  unsigned at;
};

constexpr Carrier kCarriers[] = {
    {"::ffff:0:0", 96, 12},    // IPv4-mapped
    {"::ffff:0:0:0", 96, 12},  // translated (RFC 2765)
    {"::", 96, 12},            // IPv4-compatible
    {"64:ff9b::", 96, 12},     // NAT64
    {"2002::", 16, 2},         // 6to4
};

IpAddress parsed(const char* text, bool v6) {
  IpAddress address;
  address.v6 = v6;
  inet_pton(v6 ? AF_INET6 : AF_INET, text, address.bytes.data());
  return address;
}

template <size_t N>
std::string_view first_match(const IpAddress& address, const Range (&ranges)[N]) {
  for (const auto& range : ranges)
    if (lies_in(address, parsed(range.network, address.v6), range.prefix_bits)) return range.what;
  return {};
}

std::optional<IpAddress> carried(const IpAddress& address) {
  for (const auto& carrier : kCarriers) {
    if (!lies_in(address, parsed(carrier.network, true), carrier.prefix_bits)) continue;
    IpAddress inner;
    std::copy_n(address.bytes.begin() + carrier.at, 4, inner.bytes.begin());
    return inner;
  }
  return std::nullopt;
}

unsigned ones(const IpAddress& mask) {
  unsigned count = 0;
  for (const uint8_t byte : mask.bytes) count += static_cast<unsigned>(std::popcount(byte));
  return count;
}

}  // namespace

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  return inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), buffer, sizeof buffer);
}

std::optional<IpAddress> address_in(const std::string& host) {
  IpAddress address;
  if (inet_pton(AF_INET6, host.c_str(), address.bytes.data()) == 1) {
    address.v6 = true;
    return address;
  }
  // inet_aton stops at white space, so that "10.0.0.1 x" would be one.
  if (host.find_first_of(" \t\n\v\f\r") != std::string::npos) return std::nullopt;
  in_addr v4{};
  if (inet_aton(host.c_str(), &v4) == 0) return std::nullopt;
  address.bytes = {};
  std::memcpy(address.bytes.data(), &v4, sizeof v4);
  return address;
}

std::optional<IpAddress> from_sockaddr(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  IpAddress result;
  if (address->sa_family == AF_INET) {
    std::memcpy(result.bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return result;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  result.v6 = true;
  std::memcpy(result.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  return result;
}

bool lies_in(const IpAddress& address, const IpAddress& network, unsigned prefix_bits) {
  if (address.v6 != network.v6) return false;
  for (unsigned i = 0; i * 8 < prefix_bits; ++i) {
    const unsigned bits = std::min(prefix_bits - i * 8, 8U);
    const auto mask = static_cast<uint8_t>(0xff00U >> bits);
    if (((address.bytes[i] ^ network.bytes[i]) & mask) != 0) return false;
  }
  return true;
}

std::string_view why_not_public(const IpAddress& address) {
  if (!address.v6) return first_match(address, kV4Ranges);
  if (const auto what = first_match(address, kV6Ranges); !what.empty()) return what;
  const auto inner = carried(address);
  return inner ? first_match(*inner, kV4Ranges) : std::string_view{};
}

OwnNetworks OwnNetworks::look() {
  OwnNetworks own;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return own;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const auto address = from_sockaddr(each->ifa_addr);
    if (!address) continue;
    const unsigned whole = address->v6 ? 128 : 32;
    const auto mask = from_sockaddr(each->ifa_netmask);
    const unsigned bits = mask ? ones(*mask) : whole;
    own.add(*address, bits < (address->v6 ? kWidestV6 : kWidestV4) ? whole : bits);
  }
  return own;
}

bool OwnNetworks::contain(const IpAddress& address) const {
  // One that carries an IPv4 address of ours leads here as well.
  const auto inner = address.v6 ? carried(address) : std::nullopt;
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    return lies_in(address, network.address, network.prefix_bits) ||
           (inner && lies_in(*inner, network.address, network.prefix_bits));
  });
}

}  // namespace llm_sandbox::egress
