#include "sandbox/egress/policy.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "base/text.h"

namespace llm_sandbox {
namespace {

using egress::Destination;
using egress::IpAddress;
using egress::NamedHost;

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;
constexpr size_t kMaxAllowedHosts = 1000;

bool is_or_is_below(std::string_view host, std::string_view domain) {
  if (!host.ends_with(domain)) return false;
  return host.size() == domain.size() || host[host.size() - domain.size() - 1] == '.';
}

/// Names that cannot be public, whoever looks them up: single labels and the domains reserved for a site of one's own.
bool is_local_name(const std::string& host) {
  if (host.find_first_of(".:") == std::string::npos) return true;
  for (const std::string_view domain : {"localhost", "localdomain", "local", "internal", "home.arpa"})
    if (is_or_is_below(host, domain)) return true;
  return false;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    uint8_t byte = 0;
    const bool escape =
        text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(text.data() + at + 1, text.data() + at + 3, byte, 16).ptr == text.data() + at + 3;
    decoded += escape ? static_cast<char>(byte) : text[at];
    if (escape) at += 2;
  }
  return decoded;
}

struct Setting {
  std::string name;
  std::string value;
};

/// The first of the variables that is set to something, lower case before upper case.
std::optional<Setting> first_set(const EnvironmentLookup& lookup, std::initializer_list<const char*> lower_names) {
  for (const std::string lower : lower_names) {
    std::string upper = lower;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c == '_' ? c : static_cast<char>(c - 'a' + 'A'); });
    for (const auto& name : {lower, upper})
      if (const auto value = lookup(name); value && !trim(*value).empty())
        return Setting{name, std::string(trim(*value))};
  }
  return std::nullopt;
}

tl::unexpected<Error> unusable(const std::string& variable, const std::string& why) {
  return fail(ErrorCode::kInvalidArgument, "The proxy in " + variable + " cannot be used for installing: " + why + ".",
              "Set it to http://HOST:PORT.");
}

/// [http://][user[:password]@]host[:port][/]
Result<UpstreamProxy> parse_proxy(const Setting& setting) {
  std::string_view rest = setting.value;
  if (const size_t mark = rest.find("://"); mark != std::string_view::npos) {
    if (to_lower(rest.substr(0, mark)) != "http")
      return unusable(setting.name, "only proxies that speak plain HTTP are supported");
    rest.remove_prefix(mark + 3);
  }
  UpstreamProxy proxy;
  // A password may hold anything, even a "/" that should have been written as %2F.
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    proxy.authorization = "Basic " + base64(percent_decoded(rest.substr(0, at)));
    rest.remove_prefix(at + 1);
  }
  const auto host = egress::parse_host(rest.substr(0, rest.find('/')));
  if (!host) return unusable(setting.name, "it names no valid host and port");
  proxy.destination = {host->host, host->port.value_or(kHttpPort)};
  return proxy;
}

Result<std::optional<UpstreamProxy>> proxy_from(const EnvironmentLookup& lookup, const char* own_name) {
  const auto setting = first_set(lookup, {own_name, "all_proxy"});
  if (!setting) return std::nullopt;
  return parse_proxy(*setting).map([](UpstreamProxy proxy) { return std::optional(std::move(proxy)); });
}

bool matches(const NamedHost& allowed, const Destination& destination) {
  return allowed.host == destination.host && (!allowed.port || *allowed.port == destination.port);
}

bool leads_to(const std::optional<UpstreamProxy>& proxy, const Destination& destination) {
  return proxy && proxy->destination == destination;
}

}  // namespace

NoProxyList::NoProxyList(std::string_view value) {
  std::string separated(value);
  std::replace_if(
      separated.begin(), separated.end(), [](char c) { return c == ' ' || c == '\t'; }, ',');
  for (const auto& part : split(separated, ',')) {
    std::string_view entry = part;
    if (entry.empty()) continue;
    if (entry == "*") all_ = true;
    if (entry.starts_with("*.")) entry.remove_prefix(1);
    if (entry.starts_with('.')) entry.remove_prefix(1);
    if (const size_t slash = entry.find('/'); slash != std::string_view::npos) {
      const auto address = egress::address_in(std::string(entry.substr(0, slash)));
      unsigned bits = 0;
      const char* const end = entry.data() + entry.size();
      const bool number = std::from_chars(entry.data() + slash + 1, end, bits).ptr == end;
      if (address && number && bits <= (address->v6 ? 128U : 32U)) networks_.push_back({*address, bits});
      continue;
    }
    const bool bare_v6 = std::count(entry.begin(), entry.end(), ':') > 1 && !entry.starts_with('[');
    if (const auto host = egress::parse_host(bare_v6 ? "[" + std::string(entry) + "]" : std::string(entry)))
      hosts_.push_back(*host);
  }
}

bool NoProxyList::names(const Destination& destination) const {
  if (all_) return true;
  const auto address = egress::address_in(destination.host);
  if (address && std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
        return egress::lies_in(*address, network.address, network.prefix_bits);
      }))
    return true;
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const NamedHost& host) {
    if (host.port && *host.port != destination.port) return false;
    return address ? host.host == destination.host : is_or_is_below(destination.host, host.host);
  });
}

Result<EgressPolicy> EgressPolicy::from_environment(const EnvironmentLookup& lookup) {
  EgressPolicy policy;
  auto http = proxy_from(lookup, "http_proxy");
  if (!http) return fail(std::move(http.error()));
  auto https = proxy_from(lookup, "https_proxy");
  if (!https) return fail(std::move(https.error()));
  policy.http_proxy = std::move(*http);
  policy.https_proxy = std::move(*https);
  if (const auto none = first_set(lookup, {"no_proxy"})) policy.no_proxy = NoProxyList(none->value);
  return policy;
}

void EgressPolicy::allow_hosts_in(std::string_view text) {
  for (auto& host : egress::hosts_in(text)) {
    if (allowed_hosts.size() >= kMaxAllowedHosts) return;
    if (std::find(allowed_hosts.begin(), allowed_hosts.end(), host) == allowed_hosts.end())
      allowed_hosts.push_back(std::move(host));
  }
}

const UpstreamProxy* EgressPolicy::upstream_for(const Destination& destination, bool tunnel) const {
  const auto& proxy = tunnel ? https_proxy : http_proxy;
  return proxy && !no_proxy.names(destination) ? &*proxy : nullptr;
}

bool EgressPolicy::allows(const Destination& destination) const {
  return std::any_of(allowed_hosts.begin(), allowed_hosts.end(),
                     [&](const NamedHost& host) { return matches(host, destination); });
}

std::string EgressPolicy::objection(const Destination& destination) const {
  // A sandbox that spoke with the user's proxy itself could ask it for anything.
  if (leads_to(http_proxy, destination) || leads_to(https_proxy, destination))
    return destination.text() + " is the user's own proxy";
  const bool names_port = std::any_of(allowed_hosts.begin(), allowed_hosts.end(),
                                      [&](const NamedHost& host) { return host.port && matches(host, destination); });
  if (destination.port != kHttpPort && destination.port != kHttpsPort && !names_port)
    return destination.text() + " is not on port 80 or 443";
  if (allows(destination)) return {};
  if (const auto address = egress::address_in(destination.host)) {
    const auto what = egress::why_not_public(*address);
    return what.empty() ? std::string() : destination.host + " is " + std::string(what);
  }
  return is_local_name(destination.host) ? destination.host + " is a name of this machine or its network" : "";
}

std::string EgressPolicy::objection(const Destination& destination, const IpAddress& address,
                                    const egress::OwnNetworks& own) const {
  if (allows(destination)) return {};
  std::string_view what = egress::why_not_public(address);
  if (what.empty() && own.contain(address)) what = "an address of this machine or its network";
  if (what.empty()) return {};
  const std::string text = address.text();
  return (text == destination.host ? text : destination.host + " (" + text + ")") + " is " + std::string(what);
}

}  // namespace llm_sandbox
