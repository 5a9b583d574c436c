#include "sandbox/layer_cache.h"

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "layer_cache_support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

/// Lets the layer look as if it was last used so long ago.
void age(const std::string& layer_folder, std::chrono::hours hours) {
  const auto about = fs::path(layer_folder).parent_path() / "about.json";
  fs::last_write_time(about, fs::file_time_type::clock::now() - hours);
}

std::string titles(const std::vector<LayerInfo>& layers) {
  std::string text;
  for (const auto& layer : layers) text += layer.description.title + " ";
  return text;
}

}  // namespace

TEST_CASE("a layer is made once and is there from then on") {
  const Place place;
  const LayerCache cache(place.options());
  CHECK_FALSE(cache.find(packages("numpy")));
  CHECK_FALSE(fs::exists(place.cache()));
  {
    const auto made = cache.get(packages("numpy"), with_file("module.py", "import this"), soon(), {});
    REQUIRE(made);
    CHECK(content_of(made->folder() + "/module.py") == "import this");
    CHECK(made->folder().starts_with(place.cache() + "/layers/"));
  }
  const auto again = LayerCache(place.options()).get(packages("numpy"), never_called(), soon(), {});
  REQUIRE(again);
  CHECK(content_of(again->folder() + "/module.py") == "import this");
  CHECK(cache.find(packages("numpy"))->folder() == again->folder());
  check_no_remains(place.cache());
}

TEST_CASE("a layer is told apart by all that its content depends on, not by its title") {
  const Place place;
  const LayerCache cache(place.options());
  const LayerDescription first{"packages", "python", "one", {"ab", "c"}};
  REQUIRE(cache.get(first, with_file("x"), soon(), {}));
  CHECK(cache.find({"packages", "python", "other title", {"ab", "c"}}));
  for (const auto& other : {LayerDescription{"packages", "python", "one", {"a", "bc"}},
                            LayerDescription{"packages", "python", "one", {"ab", "c", ""}},
                            LayerDescription{"packages", "python", "one", {"c", "ab"}},
                            LayerDescription{"packages", "ruby", "one", {"ab", "c"}},
                            LayerDescription{"prepared", "python", "one", {"ab", "c"}}})
    CHECK_FALSE(cache.find(other));
}

TEST_CASE("list tells what there is and clear removes it, but not what is in use") {
  const Place place;
  const LayerCache cache(place.options());
  CHECK(cache.list().empty());
  CHECK(cache.clear().empty());
  REQUIRE(cache.get({"prepared", "ruby", "Ruby 3.1", {}}, with_file("x"), soon(), {}));
  auto old = cache.get(packages("old"), with_script("mkdir a; head -c 100000 /dev/zero >a/b"), soon(), {});
  REQUIRE(old);
  age(old->folder(), 5h);
  const auto layers = cache.list();
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].description.title == "Ruby 3.1");
  CHECK(layers[0].description.kind == "prepared");
  CHECK_FALSE(layers[0].in_use);
  CHECK(layers[1].description.language == "python");
  CHECK(layers[1].in_use);
  CHECK(layers[1].bytes >= 100'000);
  CHECK(layers[1].bytes < 130'000);
  CHECK(layers[1].files == 3);
  CHECK(layers[1].used < layers[0].used - 4h);
  CHECK(std::chrono::system_clock::now() - layers[1].made < 1h);

  CHECK(titles(cache.clear()) == "Ruby 3.1 ");
  CHECK(titles(cache.list()) == "old ");
  old = fail(ErrorCode::kCancelled, "not needed any more");
  CHECK(cache.clear("ruby").empty());
  CHECK(titles(cache.clear("python")) == "old ");
  CHECK(cache.list().empty());
  check_no_remains(place.cache());
}

TEST_CASE("threads that ask for the same layer get one that was made once") {
  const Place place;
  const LayerCache cache(place.options());
  std::atomic<int> times = 0;
  std::latch all(8);
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 8; ++i)
    answers.push_back(std::async(std::launch::async, [&] {
      all.arrive_and_wait();
      const auto make = [&](const std::string& folder, std::stop_token) {
        ++times;
        write_file(folder + "/x");
        return Result<void>();
      };
      const auto lease = cache.get(packages("numpy"), make, soon(), {});
      return lease ? content_of(lease->folder() + "/x") : lease.error().text();
    }));
  for (auto& answer : answers) CHECK(answer.get() == "x");
  CHECK(times == 1);
  check_no_remains(place.cache());
}

const bool get_defined = Other::define("get", [](const std::string& place, Other& test) {
  LayerCache::Options options;
  options.folder = place + "/cache";
  test.say("started");
  test.hear();
  const auto make = [&](const std::string& folder, std::stop_token) {
    write_file(place + "/made-by-" + std::to_string(getpid()));
    write_file(folder + "/x", "whole");
    return Result<void>();
  };
  const auto lease = LayerCache(options).get(packages("numpy"), make, soon(), {});
  REQUIRE(lease);
  test.say(content_of(lease->folder() + "/x"));
  test.hear();
});

TEST_CASE("processes that ask for the same layer get one that was made once") {
  const Place place;
  std::vector<Other> others;
  for (int i = 0; i < 6; ++i) others.emplace_back("get", place.path());
  for (auto& other : others) CHECK(other.hear() == "started");
  for (auto& other : others) other.say("go");
  for (auto& other : others) CHECK(other.hear() == "whole");
  for (auto& other : others) other.finish();
  CHECK(entries_in(place.path()) == 2);  // the cache and one made-by-
  check_no_remains(place.cache());
}

const bool hang_defined = Other::define("hang", [](const std::string& place, Other& test) {
  LayerCache::Options options;
  options.folder = place + "/cache";
  const auto make = [&](const std::string& folder, std::stop_token) {
    write_file(folder + "/half");
    test.say("making");
    test.hear();
    return Result<void>();
  };
  static_cast<void>(LayerCache(options).get(packages("numpy"), make, soon(), {}));
});

TEST_CASE("of a server that is killed while it makes a layer, nothing is trusted and nothing remains") {
  const Place place;
  const LayerCache cache(place.options());
  Other other("hang", place.path());
  CHECK(other.hear() == "making");
  CHECK_FALSE(cache.find(packages("numpy")));
  auto waiting =
      std::async(std::launch::async, [&] { return cache.get(packages("numpy"), with_file("other"), soon(), {}); });
  CHECK(waiting.wait_for(300ms) == std::future_status::timeout);
  other.kill();
  const auto lease = waiting.get();
  REQUIRE(lease);
  CHECK(fs::exists(lease->folder() + "/other"));
  CHECK_FALSE(fs::exists(lease->folder() + "/half"));
  check_no_remains(place.cache());
}

TEST_CASE("whoever makes or clears the next layer removes what killed servers left") {
  const Place place;
  const LayerCache cache(place.options());
  for (const bool clears : {false, true}) {
    Other other("hang", place.path());
    CHECK(other.hear() == "making");
    cache.clear();
    REQUIRE(cache.get(packages("other"), with_file("x"), soon(), {}));
    CHECK(entries_in(place.cache() + "/making") == 1);  // of a living one
    other.kill();
    CHECK(entries_in(place.cache() + "/making") == 1);
    if (clears) {
      cache.clear();
    } else {
      REQUIRE(cache.get(packages("third"), with_file("x"), soon(), {}));
    }
    check_no_remains(place.cache());
  }
}

TEST_CASE("a failing attempt is told to its caller and handed on to the next waiter") {
  const Place place;
  const LayerCache cache(place.options());
  std::latch making(1);
  std::promise<void> end;
  auto first = std::async(std::launch::async, [&] {
    const auto make = [&](const std::string& folder, std::stop_token) -> Result<void> {
      write_file(folder + "/half");
      making.count_down();
      end.get_future().wait();
      return fail(ErrorCode::kInstallFailed, "no such package");
    };
    return cache.get(packages("numpy"), make, soon(), {});
  });
  making.wait();
  auto second =
      std::async(std::launch::async, [&] { return cache.get(packages("numpy"), with_file("whole"), soon(), {}); });
  CHECK(second.wait_for(200ms) == std::future_status::timeout);
  end.set_value();
  const auto failed = first.get();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kInstallFailed);
  CHECK(failed.error().sentence == "no such package");
  const auto lease = second.get();
  REQUIRE(lease);
  CHECK(fs::exists(lease->folder() + "/whole"));
  CHECK_FALSE(fs::exists(lease->folder() + "/half"));
  check_no_remains(place.cache());
}

TEST_CASE("a failing attempt or an exception leaves nothing") {
  const Place place;
  const LayerCache cache(place.options());
  CHECK_FALSE(cache.get(packages("numpy"), with_script("mkdir -p a/b; touch a/b/c; exit 1"), soon(), {}));
  CHECK_THROWS(static_cast<void>(cache.get(
      packages("numpy"), [](const std::string&, std::stop_token) -> Result<void> { throw std::runtime_error("x"); },
      soon(), {})));
  CHECK(entries_in(place.cache() + "/making") == 0);
  CHECK(entries_in(place.cache() + "/layers") == 0);
}

TEST_CASE("waiting ends at the deadline and when the caller gives up") {
  const Place place;
  const LayerCache cache(place.options());
  Other other("hang", place.path());
  CHECK(other.hear() == "making");

  const auto late = cache.get(packages("numpy"), never_called(), Deadline::after(100ms), {});
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kTimeout);
  CHECK(late.error().sentence.find("python packages (numpy)") == 0);

  std::stop_source caller;
  auto waiting = std::async(std::launch::async, [&] {
    return cache.get(packages("numpy"), never_called(), Deadline::never(), caller.get_token());
  });
  CHECK(waiting.wait_for(100ms) == std::future_status::timeout);
  caller.request_stop();
  const auto cancelled = waiting.get();
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == ErrorCode::kCancelled);
}

TEST_CASE("a caller that gives up stops the making") {
  const Place place;
  const LayerCache cache(place.options());
  std::stop_source caller;
  const auto make = [&](const std::string& folder, std::stop_token stop) -> Result<void> {
    write_file(folder + "/half");
    caller.request_stop();
    while (!stop.stop_requested()) std::this_thread::yield();
    return fail(ErrorCode::kCancelled, "stopped");
  };
  const auto stopped = cache.get(packages("numpy"), make, soon(), caller.get_token());
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::kCancelled);
  check_no_remains(place.cache());
  CHECK(cache.get(packages("numpy"), never_called(), soon(), caller.get_token()).error().code == ErrorCode::kCancelled);
  CHECK_FALSE(cache.find(packages("numpy")));
}

TEST_CASE("a layer that grows too large is stopped and refused") {
  const Place place;
  auto options = place.options();
  options.max_layer_bytes = 1 << 20;
  options.max_layer_files = 200;
  const LayerCache cache(options);
  const auto refusal = [&](const std::string& script) {
    const auto answer = cache.get(packages("big"), with_script(script), soon(), {});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::kTooLarge);
    check_no_remains(place.cache());
    return answer.error().sentence;
  };
  // These never end by themselves.
  CHECK(refusal("while :; do head -c 10000 /dev/zero >>a; done") ==
        "python packages (big) is too large to keep: it takes more than 1 MiB.");
  CHECK(refusal("i=0; while :; do i=$((i+1)); mkdir $i; done").find("more than 200 files") != std::string::npos);
  CHECK(refusal("while :; do mkdir d; cd d; done").find("nested more than") != std::string::npos);
  // These are done before anybody looks.
  CHECK(refusal("head -c 1100000 /dev/zero >a").find("1 MiB") != std::string::npos);
  CHECK(refusal("touch $(seq 300)").find("200 files") != std::string::npos);

  CHECK(cache.get(packages("holes"), with_script("truncate -s 1T a; ln a b"), soon(), {}));
  CHECK(cache.get(packages("links"), with_script("head -c 900000 /dev/zero >a; ln a b; ln a c"), soon(), {}));
}

const bool hold_defined = Other::define("hold", [](const std::string& place, Other& test) {
  LayerCache::Options options;
  options.folder = place + "/cache";
  const auto lease = LayerCache(options).find(packages("oldest"));
  REQUIRE(lease);
  test.say("holds");
  test.hear();
});

TEST_CASE("the least recently used layers make room, but never one in use, in whatever process") {
  const Place place;
  auto options = place.options();
  options.max_bytes = 350'000;
  const LayerCache cache(options);
  const auto make = with_script("head -c 100000 /dev/zero >a");
  std::map<std::string, std::string> folders;
  int hours = 10;
  for (const char* name : {"oldest", "old", "middle"}) {
    const auto lease = cache.get(packages(name), make, soon(), {});
    REQUIRE(lease);
    folders[name] = lease->folder();
    age(lease->folder(), std::chrono::hours(hours--));
  }
  CHECK(titles(cache.list()) == "middle old oldest ");

  SUBCASE("the oldest goes") {
    REQUIRE(cache.get(packages("new"), make, soon(), {}));
    CHECK(titles(cache.list()) == "new middle old ");
  }
  SUBCASE("a use counts, be it by find or by get") {
    REQUIRE(cache.find(packages("oldest")));
    age(folders["oldest"], 2h);
    REQUIRE(cache.get(packages("old"), never_called(), soon(), {}));
    REQUIRE(cache.get(packages("new"), make, soon(), {}));
    CHECK(titles(cache.list()) == "new old oldest ");
  }
  SUBCASE("what another process uses stays") {
    Other other("hold", place.path());
    CHECK(other.hear() == "holds");
    age(folders["oldest"], 100h);
    REQUIRE(cache.get(packages("new"), make, soon(), {}));
    CHECK(titles(cache.list()) == "new middle oldest ");
    CHECK(cache.list().back().in_use);
    CHECK(titles(cache.clear()) == "new middle ");
    other.finish();
    CHECK(titles(cache.clear()) == "oldest ");
  }
  SUBCASE("what is in use here stays, even if all together is too much") {
    std::vector<LayerCache::Lease> leases;
    for (const char* name : {"oldest", "old", "middle", "new"}) {
      auto lease = cache.get(packages(name), make, soon(), {});
      REQUIRE(lease);
      leases.push_back(std::move(*lease));
    }
    CHECK(cache.list().size() == 4);
    CHECK(cache.clear().empty());
    leases.clear();
    REQUIRE(cache.get(packages("newest"), make, soon(), {}));
    CHECK(cache.list().size() == 3);
  }
  check_no_remains(place.cache());
}

TEST_CASE("a damaged layer is not trusted but made anew") {
  const Place place;
  const LayerCache cache(place.options());
  std::string about;
  {
    const auto lease = cache.get(packages("numpy"), with_file("x"), soon(), {});
    REQUIRE(lease);
    about = fs::path(lease->folder()).parent_path() / "about.json";
  }
  for (const char* text : {"", "{", "[]", R"({"kind": 1})"}) {
    CAPTURE(text);
    write_file(about, text);
    CHECK_FALSE(cache.find(packages("numpy")));
    CHECK(cache.list().empty());
    CHECK(cache.get(packages("numpy"), with_file("y"), soon(), {}));
    CHECK(cache.list().size() == 1);
  }
  fs::remove(about);
  CHECK(cache.clear().empty());
  CHECK(entries_in(place.cache() + "/layers") == 0);
  check_no_remains(place.cache());
}

TEST_CASE("a process of its own" * doctest::skip()) { Other::run_task(); }
