#include "sandbox/egress/host.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "sandbox/egress/address.h"

namespace llm_sandbox::egress {
namespace {

constexpr size_t kMaxHostBytes = 253;  // of a name in DNS
constexpr size_t kMaxHosts = 1000;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHostBytes && host.front() != '.' &&
         host.find("..") == std::string_view::npos && std::all_of(host.begin(), host.end(), [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_';
         });
}

/// What ends so is an address or nothing (as for browsers): another program might read "1.2.3.127.1" as one.
bool ends_in_number(std::string_view host) {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  const bool hex = last.starts_with("0x");
  return last.find_first_not_of(hex ? "x0123456789abcdef" : "0123456789") == std::string_view::npos;
}

std::optional<std::string> normal_host(std::string_view text) {
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  std::string host = to_lower(bracketed ? text.substr(1, text.size() - 2) : text);
  if (!bracketed && host.ends_with('.')) host.pop_back();
  const auto address = address_in(host);
  if (bracketed != (address && address->v6)) return std::nullopt;
  if (address) return address->text();
  if (!is_name(host) || ends_in_number(host)) return std::nullopt;
  return host;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

bool has_prefix(std::string_view text, std::string_view lower_prefix) {
  return to_lower(text.substr(0, lower_prefix.size())) == lower_prefix;
}

tl::unexpected<Error> nonsense(std::string sentence) { return fail(ErrorCode::kInvalidArgument, std::move(sentence)); }

/// The authority that a text begins with, without the user and password in it.
std::string_view authority_at(std::string_view text) {
  std::string_view authority = text.substr(0, text.find_first_of("/?#\\\"'`<>(){}|,; \t\r\n"));
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
  return authority;
}

/// Whether what stands before a URL, on its line, says that it is a proxy's: "https-proxy = ", "Acquire::http::Proxy ";
/// but not "GOPROXY=", whose values are registries, nor the path of another URL.
bool announces_proxy(std::string_view before) {
  before = before.substr(before.rfind('\n') + 1);
  if (const size_t other = before.rfind("://"); other != std::string_view::npos) {
    before.remove_prefix(other);
    before.remove_prefix(std::min(before.find_first_of(" \t\r\"'`<>,;|"), before.size()));
  }
  const std::string line = to_lower(before);
  const size_t word = line.rfind("proxy");
  return word != std::string::npos && (word == 0 || line[word - 1] < 'a' || line[word - 1] > 'z');
}

}  // namespace

std::string Destination::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<NamedHost> parse_host(std::string_view text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && text.find(']', colon) == std::string_view::npos;
  const auto host = normal_host(has_port ? text.substr(0, colon) : text);
  if (!host) return std::nullopt;
  if (!has_port) return NamedHost{*host};
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  return NamedHost{*host, port};
}

Result<HttpTarget> parse_http_url(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!has_prefix(url, kScheme))
    return nonsense("The proxy takes CONNECT host:port and requests for http:// URLs, and nothing else.");
  url.remove_prefix(kScheme.size());
  const size_t path_at = std::min(url.find_first_of("/?#"), url.size());
  const auto host = parse_host(url.substr(0, path_at));
  if (!host) return nonsense("The request's URL names no valid host.");
  std::string_view path = url.substr(path_at);
  path = path.substr(0, path.find('#'));
  HttpTarget target{{host->host, host->port.value_or(80)}, std::string(path)};
  if (!target.path.starts_with('/')) target.path.insert(0, "/");
  return target;
}

Result<Destination> parse_connect_target(std::string_view target) {
  const auto host = parse_host(target);
  if (!host || !host->port) return nonsense("CONNECT needs a valid host and port (host:port).");
  return Destination{host->host, *host->port};
}

std::vector<NamedHost> hosts_in(std::string_view text) {
  std::vector<NamedHost> hosts;
  constexpr std::string_view kMark = "://";
  for (size_t at = text.find(kMark); at != std::string_view::npos && hosts.size() < kMaxHosts;
       at = text.find(kMark, at + 1)) {
    const auto scheme_ends_with = [&](std::string_view scheme) {
      return at >= scheme.size() && has_prefix(text.substr(at - scheme.size()), scheme);
    };
    if (!scheme_ends_with("http") && !scheme_ends_with("https")) continue;
    if (announces_proxy(text.substr(0, at))) continue;
    const auto host = parse_host(authority_at(text.substr(at + kMark.size())));
    if (host && std::find(hosts.begin(), hosts.end(), *host) == hosts.end()) hosts.push_back(*host);
  }
  return hosts;
}

}  // namespace llm_sandbox::egress
