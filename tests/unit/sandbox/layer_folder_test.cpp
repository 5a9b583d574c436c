#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "layer_cache_support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

/// The error of a cache in this folder.
std::string refusal_of(const std::string& folder) {
  LayerCache::Options options;
  options.folder = folder;
  const LayerCache cache(options);
  const auto answer = cache.get(packages("numpy"), never_called(), soon(), {});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::kIo);
  CHECK(answer.error().text().find("--cache-dir") != std::string::npos);
  CHECK_FALSE(cache.find(packages("numpy")));
  CHECK(cache.list().empty());
  CHECK(cache.clear().empty());
  if (!folder.empty()) CHECK(answer.error().sentence.find(folder) != std::string::npos);
  return answer.error().text();
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("an unusable cache folder is told by its name, with why and what to do") {
  const Place place;
  CHECK(holds(refusal_of(""), "HOME"));
  write_file(place / "file");
  CHECK(holds(refusal_of(place / "file"), "Not a directory"));
  CHECK(holds(refusal_of(place / "file/below/it"), "Not a directory"));
  CHECK(holds(refusal_of("/proc/nothing"), "cannot be made"));
  fs::create_symlink("/nonexistent/folder", place / "dangling");
  CHECK(holds(refusal_of(place / "dangling"), "No such file"));
  fs::create_directory(place / "open");
  fs::permissions(place / "open", fs::perms(0777));
  CHECK(holds(refusal_of(place / "open"), "chmod go-w"));
  CHECK(LayerCache({place / "open"}).check().error().code == ErrorCode::kIo);
  CHECK(LayerCache({place / "missing"}).check());
}

TEST_CASE("an ordinary user's folder that cannot be written to") {
  const bool root = is_root();
  const Place place;
  fs::create_directory(place / "closed");
  fs::permissions(place / "closed", fs::perms(0555));
  if (root) {
    Other("refused", place / "closed", kSomebody).finish();
  } else {
    CHECK(holds(refusal_of((place / "closed") + "/cache"), "Permission denied"));
  }
}
const bool refused_defined = Other::define("refused", [](const std::string& folder, Other&) {
  CHECK(holds(refusal_of(folder), "belongs to another user (id 0)"));
  CHECK(holds(refusal_of(folder + "/cache"), "Permission denied"));
});

TEST_CASE("root's cache folder lies where only root can change it and others can reach it") {
  if (!is_root()) {
    MESSAGE("skipped: root");
    return;
  }
  const Place place;
  REQUIRE(chown(place.path().c_str(), kSomebody, kSomebody) == 0);
  CHECK(holds(refusal_of(place / "cache"), "others than root may change the folder"));
  CHECK(entries_in(place.path()) == 0);
  fs::create_directory(place / "cache");
  CHECK(holds(refusal_of(place / "cache"), "others than root may change the folder"));
  REQUIRE(chown(place.path().c_str(), 0, 0) == 0);
  REQUIRE(chown((place / "cache").c_str(), kSomebody, kSomebody) == 0);
  CHECK(holds(refusal_of(place / "cache"), "belongs to another user (id 1000)"));
  REQUIRE(chown((place / "cache").c_str(), 0, 0) == 0);
  chmod((place / "cache").c_str(), 0700);
  CHECK(holds(refusal_of(place / "cache"), "Run: chmod 0711"));
  chmod((place / "cache").c_str(), 0711);
  chmod(place.path().c_str(), 0700);
  CHECK(holds(refusal_of(place / "cache"), "does not let through"));
  chmod(place.path().c_str(), 0755);
  CHECK(LayerCache(place.options()).get(packages("numpy"), with_file("x"), soon(), {}));
}

// In a mount namespace of its own.
const bool small_disk_defined = Other::define("small disk", [](const std::string& place, Other& test) {
  const std::string disk = place + "/disk";
  fs::create_directory(disk);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("small", disk.c_str(), "tmpfs", 0, "size=256k,mode=755") != 0)
    return test.say("skipped: the right to make a mount namespace");
  LayerCache::Options options;
  options.folder = disk + "/cache";
  const LayerCache cache(options);
  REQUIRE(cache.get(packages("kept"), with_file("x"), soon(), {}));
  const auto filled = cache.get(packages("big"), with_script("head -c 1000000 /dev/zero >a"), soon(), {});
  REQUIRE_FALSE(filled);
  CHECK(filled.error().code == ErrorCode::kInstallFailed);  // the maker's own words
  check_no_remains(options.folder);
  const auto full = cache.get(packages("fits"), with_script("head -c 1000000 /dev/zero >a || :"), soon(), {});
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::kIo);
  CHECK(holds(full.error().text(), options.folder));
  CHECK(holds(full.error().text(), "No space left on device"));
  CHECK(holds(full.error().text(), "llm-sandbox cache clear"));
  check_no_remains(options.folder);
  write_file(disk + "/rest", "");
  const auto taken = with_script("head -c 1000000 /dev/zero >a || :")(disk, {});
  CHECK(cache.find(packages("kept")));
  CHECK(cache.clear().size() == 1);

  REQUIRE(fs::remove(disk + "/a"));
  REQUIRE(cache.get(packages("kept"), with_file("x"), soon(), {}));
  REQUIRE(mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  const auto read_only = cache.get(packages("new"), never_called(), soon(), {});
  REQUIRE_FALSE(read_only);
  CHECK(read_only.error().code == ErrorCode::kIo);
  CHECK(holds(read_only.error().text(), "Read-only file system"));
  CHECK(cache.list().size() == 1);
  CHECK(cache.clear().empty());
  test.say("done");
});

TEST_CASE("a full disk and a read-only one are told") {
  if (!is_root()) {
    MESSAGE("skipped: root");
    return;
  }
  const Place place;
  Other other("small disk", place.path());
  const std::string said = other.hear();
  if (said.starts_with("skipped"))
    MESSAGE(said);
  else
    CHECK(said == "done");
  other.finish();
}

TEST_CASE("default_cache_folder") {
  std::map<std::string, std::string> variables;
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  if (is_root()) {
    CHECK(default_cache_folder(environment) == "/var/cache/llm-sandbox");
    return;
  }
  CHECK(default_cache_folder(environment).empty());
  variables = {{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "relative"}};
  CHECK(default_cache_folder(environment) == "/home/me/.cache/llm-sandbox");
  variables["XDG_CACHE_HOME"] = "/caches";
  CHECK(default_cache_folder(environment) == "/caches/llm-sandbox");
}
