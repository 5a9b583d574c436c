#include "backends/bubblewrap/host_ids.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "temp_folder.h"

using namespace llm_sandbox;
using test::TempFolder;
namespace fs = std::filesystem;

namespace {

std::string ranges(std::string_view uid_map, std::string_view gid_map) {
  std::string text;
  for (const auto& range : ids_for(uid_map, gid_map))
    text += std::to_string(range.first) + "-" + std::to_string(range.last) + " ";
  return text;
}

}  // namespace

TEST_CASE("host ids lie outside what systemd hands out, or in what a small map has") {
  const char* const whole = "         0          0 4294967295\n";
  CHECK(ranges(whole, whole) == "1879048192-1879052287 60706-61183 65520-65534 ");
  CHECK(ranges("0 100000 65536\n", "0 100000 65536\n") == "60706-61183 65520-65534 ");
  CHECK(ranges("0 100000 65536\n", "0 100000 61000\n") == "60706-60999 ");
  CHECK(ranges("0 1000 1\n1 100000 65536\n", "0 1000 1\n1 100000 65536\n") == "60706-61183 65520-65534 ");
  CHECK(ranges("0 1000 1\n", "0 1000 1\n") == "");
  CHECK(ranges("", "") == "");
  CHECK(ranges("garbage\n0 0\n0 0 99999999999999999999\n", whole) == "");
}

TEST_CASE("ids that are held at the same time differ, and come back when they are released") {
  const TempFolder folder;
  const HostIds first(folder + "/a/ids", {{7000, 7002}});
  const HostIds second(folder + "/a/ids", {{7000, 7002}});  // another server
  {
    const auto one = first.claim();
    const auto two = second.claim();
    const auto three = first.claim();
    REQUIRE(one);
    REQUIRE(two);
    REQUIRE(three);
    CHECK(one->id() == 7000);
    CHECK(two->id() == 7001);
    CHECK(three->id() == 7002);
    const auto none = second.claim();
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ErrorCode::kBackendUnavailable);
  }
  CHECK(second.claim()->id() == 7000);
}

TEST_CASE("a folder for host ids that others can write to is not used") {
  const TempFolder folder;
  fs::create_directories(folder + "/ids");
  fs::permissions(folder + "/ids", fs::perms(0777));
  CHECK(HostIds(folder + "/ids", {{7000, 7000}}).claim().error().code == ErrorCode::kBackendUnavailable);
  fs::create_symlink(folder + "/elsewhere", folder + "/link");
  CHECK_FALSE(HostIds(folder + "/link", {{7000, 7000}}).claim());
}

TEST_CASE("without any mapped id the error says what to do") {
  const auto none = HostIds("/nonexistent", {}).claim();
  REQUIRE_FALSE(none);
  CHECK(none.error().hint.find("ordinary user") != std::string::npos);
}
