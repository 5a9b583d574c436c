#include "backends/bubblewrap/cgroups.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "backends/bubblewrap/host_files.h"
#include "base/process.h"
#include "base/text.h"
#include "fake_cgroup2.h"

using namespace llm_sandbox;
using namespace std::chrono_literals;
using test::FakeCgroup2;
namespace fs = std::filesystem;

namespace {

constexpr CgroupLimits kLimits{uint64_t{64} << 20, 20, 0.5};

/// A process in the group `own` of a v2 hierarchy that is mounted at the fake's root.
CgroupPlace place_in(const FakeCgroup2& fake, const std::string& own, bool is_root) {
  CgroupPlace place;
  place.mount_info = "31 23 0:28 / " + fake.root() + " rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
  place.self_cgroup = "0::" + own + "\n";
  place.pid = 4242;
  place.start_time = 99;
  place.is_root = is_root;
  return place;
}

std::string content(const std::string& path) { return read_host_file(path).value_or("(missing)"); }

std::string only_server_folder(const FakeCgroup2& fake, const std::string& group) {
  for (const auto& name : fake.folders(group))
    if (name.starts_with("llm-sandbox-4242-99")) return group + "/" + name;
  return "";
}

bool holds_any(const CgroupTree& tree) {
  return tree.holds(Controller::kMemory) || tree.holds(Controller::kPids) || tree.holds(Controller::kCpu);
}

std::shared_ptr<const CgroupTree> open_tree(const CgroupPlace& place, const std::shared_ptr<FakeCgroup2>& fake) {
  return CgroupTree::open(place, fake);
}

}  // namespace

TEST_CASE("fake v2: alone in a delegated group, the server steps aside and gives each sandbox its limits") {
  const auto fake = std::make_shared<FakeCgroup2>(true);
  fake->hand_down_all(fake->root());
  const std::string unit = fake->root() + "/unit";
  REQUIRE(fake->make_folder(unit) == 0);
  fake->put(unit, "4242");
  {
    const auto tree = open_tree(place_in(*fake, "/unit", false), fake);
    for (const auto controller : kControllers) {
      CHECK(tree->holds(controller));
      CHECK(tree->version(controller) == "cgroup v2");
    }
    const std::string home = only_server_folder(*fake, unit);
    CHECK(fake->members(home + "/server") == std::vector<std::string>{"4242"});
    CHECK(fake->members(unit).empty());

    auto group = tree->make("7", kLimits);
    REQUIRE(group);
    CHECK(group->join_files() == std::vector<std::string>{home + "/7/cgroup.procs"});
    CHECK(content(home + "/7/memory.max") == "67108864");
    CHECK(content(home + "/7/memory.swap.max") == "0");
    CHECK(content(home + "/7/pids.max") == "20");
    CHECK(content(home + "/7/cpu.max") == "50000 100000");
    CHECK(group->events().out_of_memory_kills == 3);
    CHECK(group->events().process_limit_hits == 5);

    fake->put(home + "/7", "5555");
    CHECK_FALSE(group->remove());
    fake->put(fake->root(), "5555");
    CHECK(group->remove());
    CHECK_FALSE(fs::exists(home + "/7"));
  }
  CHECK(fake->members(unit) == std::vector<std::string>{"4242"});
  CHECK(fake->folders(unit).empty());
}

TEST_CASE("fake v2: beside other processes in its group the server makes no groups, and says why") {
  const auto fake = std::make_shared<FakeCgroup2>(true);
  fake->hand_down_all(fake->root());
  const std::string session = fake->root() + "/session";
  REQUIRE(fake->make_folder(session) == 0);
  fake->put(session, "4242");
  fake->put(session, "1");
  const auto tree = open_tree(place_in(*fake, "/session", false), fake);
  CHECK_FALSE(holds_any(*tree));
  CHECK(tree->why_not(Controller::kMemory).find("other processes share the control group " + session) !=
        std::string::npos);
  CHECK(fake->folders(session).empty());
  const auto nothing = tree->make("7", kLimits);
  REQUIRE(nothing);
  CHECK(nothing->join_files().empty());
  CHECK(nothing->events().out_of_memory_kills == 0);
}

TEST_CASE("fake v2: root falls back to the hierarchy's root") {
  const auto fake = std::make_shared<FakeCgroup2>(true);
  const std::string session = fake->root() + "/session";
  REQUIRE(fake->make_folder(session) == 0);
  fake->put(session, "4242");
  fake->put(session, "1");
  fake->put(fake->root(), "2");
  {
    const auto tree = open_tree(place_in(*fake, "/session", true), fake);
    CHECK(tree->holds(Controller::kMemory));
    CHECK(tree->holds(Controller::kPids));
    CHECK_FALSE(only_server_folder(*fake, fake->root()).empty());
    CHECK(fake->members(session).size() == 2);
  }
  CHECK(only_server_folder(*fake, fake->root()).empty());
}

TEST_CASE("fake v2: controllers that were not handed down, and folders that cannot be made, are named") {
  const auto fake = std::make_shared<FakeCgroup2>(true);
  const std::string bare = fake->root() + "/bare";
  REQUIRE(fake->make_folder(bare) == 0);
  const auto without = open_tree(place_in(*fake, "/bare", false), fake);
  CHECK_FALSE(holds_any(*without));
  CHECK(without->why_not(Controller::kPids).find("offers no controller") != std::string::npos);

  fake->hand_down_all(fake->root());
  fake->refuse_below(bare);
  const auto refused = open_tree(place_in(*fake, "/bare", false), fake);
  CHECK_FALSE(holds_any(*refused));
  CHECK(refused->why_not(Controller::kPids).find("Permission denied") != std::string::npos);
}

TEST_CASE("without any hierarchy the reason says so") {
  const auto tree = CgroupTree::open(CgroupPlace{}, std::make_shared<CgroupFiles>());
  CHECK_FALSE(holds_any(*tree));
  CHECK(tree->why_not(Controller::kCpu) == "no control groups are mounted");
}

TEST_CASE("fake v2: folders of dead servers are swept, those of living ones never") {
  const auto fake = std::make_shared<FakeCgroup2>(true);
  const auto living = open_tree(place_in(*fake, "/", true), fake);
  auto group = living->make("1", kLimits);
  REQUIRE(group);
  const std::string dead = fake->root() + "/llm-sandbox-4141-98";
  REQUIRE(fake->make_folder(dead) == 0);
  REQUIRE(fake->make_folder(dead + "/3") == 0);
  REQUIRE(fake->make_folder(fake->root() + "/other") == 0);

  CgroupPlace place = place_in(*fake, "/", true);
  place.pid = 4343;
  const auto next = open_tree(place, fake);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(fake->root() + "/other"));
  CHECK(fs::exists(only_server_folder(*fake, fake->root()) + "/1"));
  CHECK(group->remove());
}

TEST_CASE("v1: real groups hold a real process, and a sweep ends what a dead server left") {
  const auto place = CgroupPlace::of_this_process();
  auto files = std::make_shared<CgroupFiles>();
  auto tree = CgroupTree::open(place, files);
  if (!tree->holds(Controller::kPids) || tree->version(Controller::kPids) != "cgroup v1") {
    MESSAGE("skipped: a cgroup v1 pids controller that we may use; " << tree->why_not(Controller::kPids));
    return;
  }
  auto group = tree->make("9", kLimits);
  REQUIRE(group);
  CHECK(group->join_files().size() == 3);  // memory, pids, cpu: a hierarchy each
  const auto in_group = [&](const std::string& controller) {
    for (const auto& file : group->join_files())
      if (file.find("/" + controller + "/") != std::string::npos) return fs::path(file).parent_path().string();
    return std::string();
  };
  CHECK(content(in_group("memory") + "/memory.limit_in_bytes") == "67108864\n");
  if (const std::string tcp = in_group("memory") + "/memory.kmem.tcp.limit_in_bytes"; fs::exists(tcp))
    CHECK(content(tcp) == "16777216\n");
  else
    MESSAGE("skipped: a kernel that counts the buffers of TCP in cgroup v1");
  CHECK(content(in_group("pids") + "/pids.max") == "20\n");
  CHECK(content(in_group("cpu") + "/cpu.cfs_quota_us") == "50000\n");

  std::string join_all;
  for (const auto& file : group->join_files()) join_all += "echo 0 > " + file + "; ";
  auto child = spawn({"/bin/sh", {"sh", "-c", join_all + "exec sleep 60"}, {"PATH=/usr/bin:/bin"}, {}});
  REQUIRE(child);
  const std::string pid = std::to_string(child->pid());
  const auto deadline = Deadline::after(10s);
  while (content(in_group("pids") + "/cgroup.procs") != pid + "\n" && !deadline.passed()) std::this_thread::yield();
  CHECK(content(in_group("pids") + "/cgroup.procs") == pid + "\n");
  CHECK_FALSE(group->remove());

  // The server's locks go with its descriptors; here with a tree that another one replaces, whose folder stays as the
  // group in it is in use.
  tree.reset();
  CHECK(fs::exists(in_group("pids")));
  const auto next = CgroupTree::open(place, files);
  CHECK(child->wait(Deadline::after(10s)).value_or(0) == SIGKILL);
  CHECK(group->remove());
  CHECK_FALSE(fs::exists(in_group("pids")));
}
