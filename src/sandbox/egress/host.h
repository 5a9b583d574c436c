#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace llm_sandbox::egress {

/// A host as somebody named it. `host` is lower case, without brackets or a dot at its end, and an address in its usual
/// form, so that two of them can be compared.
struct NamedHost {
  std::string host;
  std::optional<uint16_t> port = {};
  friend bool operator==(const NamedHost&, const NamedHost&) = default;
};

/// Where a request goes.
struct Destination {
  std::string host;  ///< as in NamedHost
  uint16_t port = 0;

  /// "host:port", "[::1]:port".
  std::string text() const;
  friend bool operator==(const Destination&, const Destination&) = default;
};

/// "host", "host:port", "[::1]:port"; nullopt for anything else.
std::optional<NamedHost> parse_host(std::string_view text);

/// An http:// URL of a request: where it goes, and what is asked for there ("/path?query").
struct HttpTarget {
  Destination destination;
  std::string path;
};
/// kInvalidArgument with a sentence for the client.
Result<HttpTarget> parse_http_url(std::string_view url);
/// "host:port", the port required.
Result<Destination> parse_connect_target(std::string_view target);

/// Every host that stands behind an http:// or https:// in a text (the value of a variable, a settings file), but for
/// those that a settings file says are proxies: whoever speaks with a proxy can reach what it can. Bounded to 1,000;
/// each once.
std::vector<NamedHost> hosts_in(std::string_view text);

}  // namespace llm_sandbox::egress
