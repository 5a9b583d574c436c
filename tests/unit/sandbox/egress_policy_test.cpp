#include <doctest/doctest.h>

#include <map>

#include "sandbox/egress/lookups.h"
#include "sandbox/egress/policy.h"

using namespace llm_sandbox;
using namespace llm_sandbox::egress;
using namespace std::string_literals;

namespace {

EnvironmentLookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string kind_of(const std::string& address) {
  const auto parsed = address_in(address);
  REQUIRE_MESSAGE(parsed, address);
  return std::string(why_not_public(*parsed));
}

std::string objection_to(const EgressPolicy& policy, const std::string& target) {
  const auto destination = parse_connect_target(target);
  REQUIRE_MESSAGE(destination, target);
  return policy.objection(*destination);
}

std::string where(const std::optional<UpstreamProxy>& proxy) { return proxy ? proxy->destination.text() : "none"; }

std::string hosts(std::string_view text) {
  std::string list;
  for (const auto& each : hosts_in(text))
    list += (list.empty() ? "" : " ") + each.host + (each.port ? ":" + std::to_string(*each.port) : "");
  return list;
}

}  // namespace

TEST_CASE("addresses that are not on the public internet are known in every form") {
  const std::pair<const char*, const char*> table[] = {
      {"0.0.0.0", "an unspecified address"},
      {"0", "an unspecified address"},
      {"0.1.2.3", "an unspecified address"},
      {"127.0.0.1", "a loopback address"},
      {"127.1", "a loopback address"},
      {"127.255.255.254", "a loopback address"},
      {"0x7f000001", "a loopback address"},
      {"0x7f.1", "a loopback address"},
      {"2130706433", "a loopback address"},
      {"017700000001", "a loopback address"},
      {"0177.0.0.1", "a loopback address"},
      {"10.0.0.1", "a private address"},
      {"10.255.255.255", "a private address"},
      {"9.255.255.255", ""},
      {"11.0.0.0", ""},
      {"167772161", "a private address"},
      {"172.15.255.255", ""},
      {"172.16.0.0", "a private address"},
      {"172.31.255.255", "a private address"},
      {"172.32.0.0", ""},
      {"192.168.0.1", "a private address"},
      {"192.167.255.255", ""},
      {"192.169.0.0", ""},
      {"192.0.0.192", "a reserved address"},
      {"100.63.255.255", ""},
      {"100.64.0.0", "a shared (carrier-grade NAT) address"},
      {"100.100.100.200", "a shared (carrier-grade NAT) address"},
      {"100.127.255.255", "a shared (carrier-grade NAT) address"},
      {"100.128.0.0", ""},
      {"169.254.169.254", "a link-local address"},
      {"169.253.0.0", ""},
      {"224.0.0.1", "a multicast address"},
      {"239.255.255.255", "a multicast address"},
      {"240.0.0.1", "a reserved address"},
      {"255.255.255.255", "a broadcast address"},
      {"4294967295", "a broadcast address"},
      {"1.1.1.1", ""},
      {"203.0.113.7", ""},
      {"198.51.100.1", ""},
      {"192.0.2.1", ""},
      {"::", "an unspecified address"},
      {"::1", "a loopback address"},
      {"0:0:0:0:0:0:0:1", "a loopback address"},
      {"fe80::1", "a link-local address"},
      {"febf::1", "a link-local address"},
      {"fec0::1", "a private address"},
      {"fc00::1", "a private address"},
      {"fdff:ffff::1", "a private address"},
      {"fb00::1", ""},
      {"ff02::1", "a multicast address"},
      {"2001:0:4136:e378:8000:63bf:3fff:fdd2", "a tunnel's address"},
      {"2606:4700:4700::1111", ""},
      {"2001:db8::1", ""},
      {"::ffff:127.0.0.1", "a loopback address"},
      {"::ffff:7f00:1", "a loopback address"},
      {"::ffff:10.0.0.1", "a private address"},
      {"::ffff:1.1.1.1", ""},
      {"::ffff:0:10.0.0.1", "a private address"},
      {"::127.0.0.1", "a loopback address"},
      {"64:ff9b::127.0.0.1", "a loopback address"},
      {"64:ff9b::a9fe:a9fe", "a link-local address"},
      {"64:ff9b::1.1.1.1", ""},
      {"64:ff9b:1::1.1.1.1", "a private address"},
      {"2002:7f00:1::", "a loopback address"},
      {"2002:c0a8:101::1", "a private address"},
      {"2002:101:101::1", ""},
  };
  for (const auto& [address, kind] : table) {
    CAPTURE(address);
    CHECK(kind_of(address) == kind);
  }
}

TEST_CASE("this machine's own networks lead to itself and its neighbours, whatever form carries the address") {
  OwnNetworks own;
  own.add(*address_in("203.0.113.9"), 24);
  own.add(*address_in("2001:db8:1:2::9"), 64);
  for (const char* const inside :
       {"203.0.113.9", "203.0.113.254", "2001:db8:1:2:ffff::1", "::ffff:203.0.113.9", "2002:cb00:7109::1"}) {
    CAPTURE(inside);
    CHECK(own.contain(*address_in(inside)));
  }
  for (const char* const outside : {"203.0.114.9", "2001:db8:1:3::9", "::ffff:203.0.114.9"}) {
    CAPTURE(outside);
    CHECK_FALSE(own.contain(*address_in(outside)));
  }
  CHECK(OwnNetworks::look().contain(*address_in("127.0.0.1")));

  const EgressPolicy policy;
  CHECK(policy.objection({"registry.example", 443}, *address_in("203.0.113.20"), own) ==
        "registry.example (203.0.113.20) is an address of this machine or its network");
  CHECK(policy.objection({"registry.example", 443}, *address_in("203.0.114.20"), own).empty());
}

TEST_CASE("hosts are read in one form only, and what could be read in two is none") {
  const std::pair<const char*, const char*> good[] = {
      {"Example.ORG:443", "example.org:443"},
      {"example.org.:443", "example.org:443"},
      {"127.1:80", "127.0.0.1:80"},
      {"0X7F000001:80", "127.0.0.1:80"},
      {"[::1]:80", "[::1]:80"},
      {"[0:0::1]:80", "[::1]:80"},
      {"[::FFFF:127.0.0.1]:80", "[::ffff:127.0.0.1]:80"},
      {"a_b-c.example:65535", "a_b-c.example:65535"},
  };
  for (const auto& [text, expected] : good) {
    CAPTURE(text);
    const auto destination = parse_connect_target(text);
    REQUIRE(destination);
    CHECK(destination->text() == expected);
  }
  for (const std::string bad : {"",
                                ":80",
                                "example.org",
                                "example.org:",
                                "example.org:0",
                                "example.org:65536",
                                "example.org:-1",
                                "example.org:80x",
                                "example.org: 80",
                                "exa mple.org:80",
                                "example..org:80",
                                ".example.org:80",
                                "::1:80",
                                "[::1]",
                                "[::1",
                                "[::1:80",
                                "[127.0.0.1]:80",
                                "[fe80::1%eth0]:80",
                                "user@example.org:80",
                                "a/b:80",
                                "a%2e:80",
                                "1.2.3.4.5:80",
                                "256.1.1.1:80",
                                "a.0x7f:80",
                                "127.0.0.1 x:80",
                                "\xe2\x91\xa0.example:80",
                                "a\r\nb:80"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_connect_target(bad));
  }
  CHECK_FALSE(parse_connect_target(std::string(300, 'a') + ":80"));
  CHECK_FALSE(parse_connect_target("example.org\0.evil:80"s));
}

TEST_CASE("the URL of a request says where it goes and what is asked for there") {
  const auto plain = parse_http_url("HTTP://Example.org");
  REQUIRE(plain);
  CHECK(plain->destination == Destination{"example.org", 80});
  CHECK(plain->path == "/");
  const auto whole = parse_http_url("http://[::1]:8080/a/b?c=http://d#e");
  REQUIRE(whole);
  CHECK(whole->destination == Destination{"::1", 8080});
  CHECK(whole->path == "/a/b?c=http://d");
  CHECK(parse_http_url("http://example.org?q")->path == "/?q");
  for (const char* const bad :
       {"/", "*", "https://example.org/", "ftp://example.org/", "http:/example.org", "http:///path", "http://:80/",
        "http://user:password@example.org/", "http://a\\@b/", "example.org:80", "http://exam ple/"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_http_url(bad));
  }
}

TEST_CASE("hosts are found in settings of every form") {
  CHECK(hosts("https://registry.corp:8443/simple") == "registry.corp:8443");
  CHECK(
      hosts(
          "[global]\nindex-url = https://user:p%40ss@nexus.corp/pypi/simple\nextra-index-url=http://10.1.2.3:8081/x") ==
      "nexus.corp 10.1.2.3:8081");
  CHECK(hosts("registry=HTTPS://Npm.Corp/\n@scope:registry=http://[fd00::1]:4873\n") == "npm.corp fd00::1:4873");
  CHECK(hosts("<mirror><url>http://maven.corp/repo</url></mirror>") == "maven.corp");
  CHECK(hosts("local({options(repos = c(CRAN = 'https://cran.corp'))})") == "cran.corp");
  CHECK(hosts("https://a.example,https://b.example|direct") == "a.example b.example");
  CHECK(hosts("deb [signed-by=/k] http://deb.corp/debian stable main") == "deb.corp");
  CHECK(hosts("http://user:a:b@c@host.example:81/") == "host.example:81");
  CHECK(hosts("https://x.example https://x.example/again") == "x.example");
  CHECK(hosts("ftp://no.example file:///etc ssh://no.example xhttp:/no.example https://${HOST}/ http://") == "");
  CHECK(hosts("sparse+https://index.example/") == "index.example");
  for (const char* const line : {"proxy=http://no.example:3128", "https-proxy = http://no.example",
                                 "Acquire::http::Proxy \"http://no.example\";",
                                 "Sys.setenv(http_proxy='http://no.example')", "  :http_proxy: http://no.example"}) {
    CAPTURE(line);
    CHECK(hosts(line) == "");
    CHECK(hosts(line + "\nregistry=http://a.example"s) == "a.example");
  }
  CHECK(hosts("GOPROXY=https://a.example,https://b.example") == "a.example b.example");
  CHECK(hosts("index-url = https://a.example/proxy/x https://b.example") == "a.example b.example");
  CHECK(hosts("https://proxy.example/") == "proxy.example");
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "http://h" + std::to_string(i) + ".example ";
  CHECK(hosts_in(many).size() == 1000);
}

TEST_CASE("a policy lets through public names on the usual ports and what the settings name") {
  EgressPolicy policy;
  policy.allow_hosts_in("http://10.1.2.3:8081/ https://nexus.corp http://localhost:4873");
  CHECK(objection_to(policy, "registry.example:443").empty());
  CHECK(objection_to(policy, "registry.example:80").empty());
  CHECK(objection_to(policy, "1.1.1.1:443").empty());
  CHECK(objection_to(policy, "10.1.2.3:8081").empty());
  CHECK(objection_to(policy, "nexus.corp:80").empty());
  CHECK(objection_to(policy, "nexus.corp:443").empty());
  CHECK(objection_to(policy, "localhost:4873").empty());

  const std::pair<const char*, const char*> refused[] = {
      {"10.0.0.1:443", "10.0.0.1 is a private address"},
      {"10.1.2.3:443", "10.1.2.3 is a private address"},
      {"167772161:80", "10.0.0.1 is a private address"},
      {"[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1 is a loopback address"},
      {"registry.example:22", "registry.example:22 is not on port 80 or 443"},
      {"nexus.corp:8443", "nexus.corp:8443 is not on port 80 or 443"},
      {"registry.example:8081", "registry.example:8081 is not on port 80 or 443"},
      {"localhost:80", "localhost is a name of this machine or its network"},
      {"LocalHost.:80", "localhost is a name of this machine or its network"},
      {"a.localhost:80", "a.localhost is a name of this machine or its network"},
      {"printer:80", "printer is a name of this machine or its network"},
      {"metadata.google.internal:80", "metadata.google.internal is a name of this machine or its network"},
  };
  for (const auto& [target, why] : refused) {
    CAPTURE(target);
    CHECK(objection_to(policy, target) == why);
  }
  const OwnNetworks none;
  CHECK(policy.objection({"nexus.corp", 443}, *address_in("10.9.9.9"), none).empty());
  CHECK(policy.objection({"evil.example", 443}, *address_in("10.9.9.9"), none) ==
        "evil.example (10.9.9.9) is a private address");
}

TEST_CASE("the user's proxies come from the environment, lower case first") {
  const auto policy = EgressPolicy::from_environment(variables({{"HTTP_PROXY", "http://upper.example:1"},
                                                                {"http_proxy", " http://lower.example:3128/ "},
                                                                {"HTTPS_PROXY", "secure.example:8080"}}));
  REQUIRE(policy);
  CHECK(where(policy->http_proxy) == "lower.example:3128");
  CHECK(where(policy->https_proxy) == "secure.example:8080");
  CHECK(policy->http_proxy->authorization.empty());

  const auto all =
      EgressPolicy::from_environment(variables({{"ALL_PROXY", "http://all.example"}, {"https_proxy", ""}}));
  REQUIRE(all);
  CHECK(where(all->http_proxy) == "all.example:80");
  CHECK(where(all->https_proxy) == "all.example:80");

  const auto none = EgressPolicy::from_environment(variables({}));
  REQUIRE(none);
  CHECK(where(none->http_proxy) == "none");
  CHECK(where(none->https_proxy) == "none");
}

TEST_CASE("a proxy's user and password become its authorization") {
  const auto authorization = [](const std::string& proxy) {
    const auto policy = EgressPolicy::from_environment(variables({{"http_proxy", proxy}}));
    REQUIRE(policy);
    return where(policy->http_proxy) + " " + policy->http_proxy->authorization;
  };
  CHECK(authorization("http://user:password@p.example:1") == "p.example:1 Basic dXNlcjpwYXNzd29yZA==");
  CHECK(authorization("http://a:b@p.example:1") == "p.example:1 Basic YTpi");
  CHECK(authorization("http://us:b@p.example:1") == "p.example:1 Basic dXM6Yg==");
  CHECK(authorization("http://u:%40%2F%zz%4@p.example:1") == "p.example:1 Basic dTpALyV6eiU0");
  CHECK(authorization("http://u:p@s/s@p.example:1") == "p.example:1 Basic dTpwQHMvcw==");
}

TEST_CASE("a proxy that cannot be used is an error that names the variable and keeps the password") {
  for (const char* const value : {"https://u:hunter2@p.example", "socks5h://u:hunter2@p.example:1", "http://u:hunter2@",
                                  "http://u:hunter2@p.example:port", "http://u:hunter2@p q"}) {
    CAPTURE(value);
    const auto policy = EgressPolicy::from_environment(variables({{"ALL_PROXY", value}}));
    REQUIRE_FALSE(policy);
    CHECK(policy.error().code == ErrorCode::kInvalidArgument);
    CHECK(policy.error().sentence.find("ALL_PROXY") != std::string::npos);
    CHECK(policy.error().text().find("hunter2") == std::string::npos);
  }
  CHECK(EgressPolicy::from_environment(
      variables({{"all_proxy", "socks5://p.example"}, {"http_proxy", "a.example"}, {"https_proxy", "a.example"}})));
}

TEST_CASE("NO_PROXY names what is reached directly") {
  const NoProxyList list(
      "one.example, .two.example *.three.example,four.example:8080,10.1.0.0/16,192.0.2.7,[2001:db8::1]:80,"
      "2001:db8::/64,2001:db8:1::5,bad/xx,");
  for (const Destination& direct : {Destination{"one.example", 443},
                                    {"sub.one.example", 80},
                                    {"two.example", 80},
                                    {"sub.two.example", 80},
                                    {"a.three.example", 1},
                                    {"four.example", 8080},
                                    {"10.1.2.3", 80},
                                    {"192.0.2.7", 80},
                                    {"2001:db8::1", 80},
                                    {"2001:db8::9", 80},
                                    {"2001:db8:1::5", 443}}) {
    CAPTURE(direct.text());
    CHECK(list.names(direct));
  }
  for (const Destination& through : {Destination{"notone.example", 443},
                                     {"one.example.org", 80},
                                     {"four.example", 80},
                                     {"10.2.0.1", 80},
                                     {"192.0.2.70", 80},
                                     {"example", 80},
                                     {"2001:db9::1", 80}}) {
    CAPTURE(through.text());
    CHECK_FALSE(list.names(through));
  }
  CHECK(NoProxyList("*").names({"any.example", 1}));
  CHECK_FALSE(NoProxyList("").names({"any.example", 1}));

  const auto policy =
      EgressPolicy::from_environment(variables({{"http_proxy", "p.example"}, {"NO_PROXY", "direct.example"}}));
  REQUIRE(policy);
  CHECK(policy->upstream_for({"direct.example", 80}, false) == nullptr);
  REQUIRE(policy->upstream_for({"other.example", 80}, false) != nullptr);
  CHECK(policy->upstream_for({"other.example", 443}, true) == nullptr);
}

TEST_CASE("the user's own proxy is no destination, even where settings name it") {
  auto policy = EgressPolicy::from_environment(variables({{"http_proxy", "http://127.0.0.1:3128"}})).value();
  policy.allow_hosts_in("http://127.0.0.1:3128");
  CHECK(objection_to(policy, "127.0.0.1:3128") == "127.0.0.1:3128 is the user's own proxy");
  CHECK(objection_to(policy, "127.1:3128") == "127.0.0.1:3128 is the user's own proxy");
}

TEST_CASE("the system's resolver knows localhost, and it is not public") {
  const auto found = resolve_by_system("localhost");
  REQUIRE(found);
  for (const auto& address : *found) CHECK(why_not_public(address) == "a loopback address");
}
