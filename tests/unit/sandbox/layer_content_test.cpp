#include <fcntl.h>
#include <sys/stat.h>

#include "layer_cache_support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

/// A layer that does what it can to do harm, and its end.
void survive_hostile_content(const std::string& place) {
  LayerCache::Options options;
  options.folder = place + "/cache";
  options.max_layer_bytes = 1 << 20;
  const LayerCache cache(options);
  const std::string outside = place + "/outside";
  fs::create_directories(outside + "/folder");
  write_file(outside + "/folder/precious", std::string(2 << 20, 'x'));
  const auto lease = cache.get(packages("hostile"),
                               with_script("ln -s /etc/passwd passwd; ln -s " + outside +
                                           " outside; ln -s . loop; ln -s /nonexistent gone; mkfifo pipe;"
                                           "mkdir -p locked/inner; touch locked/inner/file; chmod 0 locked/inner/file;"
                                           "touch program plain; chmod 6777 program; chmod 0666 plain;"
                                           "touch -- '-rf' \"$(printf 'line\\nbreak\\377')\";"
                                           "mkdir write-only read-only; chmod 0300 write-only; chmod 0400 read-only;"
                                           "chmod 0 locked/inner locked; ln -s ../../.. about.json; chmod 0 ."),
                               soon(), {});
  REQUIRE(lease);
  const auto mode = [&](const std::string& name) {
    struct stat info {};
    return lstat((lease->folder() + "/" + name).c_str(), &info) == 0 ? info.st_mode & 07777U : 0U;
  };
  CHECK(mode("") == 0755);
  CHECK(mode("locked/inner") == 0755);
  CHECK(mode("locked/inner/file") == 0644);
  CHECK(mode("program") == 0755);
  CHECK(mode("plain") == 0644);
  CHECK(fs::is_symlink(lease->folder() + "/passwd"));
  CHECK(cache.list().at(0).bytes < 200'000);  // what links point to is not counted
  CHECK(cache.list().at(0).description.title == "hostile");
}

void check_hostile_content_goes(const std::string& place) {
  LayerCache::Options options;
  options.folder = place + "/cache";
  CHECK(LayerCache(options).clear().size() == 1);
  check_no_remains(options.folder);
  CHECK(fs::file_size(place + "/outside/folder/precious") == 2 << 20);
  CHECK(fs::exists("/etc/passwd"));
}

/// Hostile content that is refused is removed, too.
void remove_what_is_refused(const std::string& place) {
  LayerCache::Options options;
  options.folder = place + "/cache";
  options.max_layer_bytes = 1 << 20;
  const LayerCache cache(options);
  for (const char* mode : {"0", "0100", "0400", "0500"}) {
    CAPTURE(mode);
    const std::string lock_up = std::string("chmod ") + mode + " a/b a .; exit 1";
    CHECK_FALSE(cache.get(packages("locked"), with_script("mkdir -p a/b; touch a/b/c a/c; " + lock_up), soon(), {}));
    check_no_remains(options.folder);
  }
  // What grows behind a closed door is seen, too; this never ends by itself.
  const auto hidden =
      cache.get(packages("hidden"),
                with_script("mkdir a; head -c 2000000 /dev/zero >a/b; chmod 0 a; exec tail -f /dev/null"), soon(), {});
  REQUIRE_FALSE(hidden);
  CHECK(hidden.error().code == ErrorCode::kTooLarge);

  const auto make = [&](const std::string& folder, std::stop_token) -> Result<void> {
    write_file(place + "/bystander");
    // By descriptors, as no path is so long.
    UniqueFd at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int depth = 0; depth < 10'000; ++depth) {
      REQUIRE(mkdirat(at.get(), "folder", 0755) == 0);
      REQUIRE(symlinkat("/etc", at.get(), "link") == 0);
      UniqueFd next(openat(at.get(), "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (depth % 10 == 5) REQUIRE(fchmod(at.get(), depth % 20 == 5 ? 0 : 0500) == 0);
      at = std::move(next);
    }
    return {};
  };
  const auto refused = cache.get(packages("deep"), make, soon(), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().sentence.find("nested") != std::string::npos);
  check_no_remains(options.folder);
  CHECK(fs::exists(place + "/bystander"));
}

const bool tasks_defined = Other::define("hostile", [](const std::string& place, Other&) {
  survive_hostile_content(place);
  check_hostile_content_goes(place);
  remove_what_is_refused(place);
});

}  // namespace

TEST_CASE("hostile content is neither followed nor counted nor harmful when it goes") {
  const Place place(kManyFiles);
  survive_hostile_content(place.path());
  check_hostile_content_goes(place.path());
  remove_what_is_refused(place.path());
}

TEST_CASE("hostile content of an ordinary user's sandboxes") {
  if (!is_root()) return;  // the test before is this one
  const Place place(kManyFiles);
  chmod(place.path().c_str(), 01777);
  Other("hostile", place.path(), kSomebody).finish();
}

// Root's sandboxes run under ids of their own.
const bool fill_defined = Other::define("fill", [](const std::string& folder, Other&) {
  CHECK(geteuid() != 0);
  CHECK_THROWS(fs::directory_iterator(fs::path(folder).parent_path().parent_path()));
  umask(0077);
  write_file(folder + "/secretive");
  fs::create_directory(folder + "/inner");
  write_file(folder + "/inner/program");
  fs::permissions(folder + "/inner/program", fs::perms(0700));
});
const bool use_defined = Other::define("use", [](const std::string& folder, Other&) {
  CHECK(content_of(folder + "/secretive") == "x");
  CHECK(content_of(folder + "/inner/program") == "x");
  CHECK_THROWS(write_file(folder + "/new"));
  CHECK_THROWS(write_file(folder + "/secretive"));
});

TEST_CASE("root's layers are filled by one id, belong to root then, and are read by any") {
  if (!is_root()) {
    MESSAGE("skipped: root");
    return;
  }
  const mode_t before = umask(0077);
  const Place place;
  const LayerCache cache(place.options());
  const auto make = [](const std::string& folder, std::stop_token) {
    REQUIRE(chown(folder.c_str(), 60'706, 60'706) == 0);
    Other("fill", folder, 60'706).finish();
    return Result<void>();
  };
  const auto lease = cache.get(packages("numpy"), make, soon(), {});
  umask(before);
  REQUIRE(lease);
  for (const char* name : {"", "/secretive", "/inner", "/inner/program"}) {
    struct stat info {};
    REQUIRE(lstat((lease->folder() + name).c_str(), &info) == 0);
    CHECK(info.st_uid == 0);
    CHECK(info.st_gid == 0);
  }
  Other("use", lease->folder(), 60'707).finish();
  Other("use", lease->folder(), 60'706).finish();
}
