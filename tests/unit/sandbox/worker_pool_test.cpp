#include "sandbox/worker_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <latch>

using namespace llm_sandbox;

TEST_CASE("WorkerPool runs tasks side by side and finishes what is queued") {
  std::atomic<int> done{0};
  {
    WorkerPool pool(2, 100);
    std::latch both(2);
    for (int i = 0; i < 2; ++i) REQUIRE(pool.try_post([&] { both.arrive_and_wait(); }));
    for (int i = 0; i < 50; ++i) REQUIRE(pool.try_post([&] { ++done; }));
  }
  CHECK(done == 50);
}

TEST_CASE("WorkerPool says no at once when its queue is full") {
  std::promise<void> gate;
  auto open = gate.get_future().share();
  std::promise<void> running;
  WorkerPool pool(1, 2);
  REQUIRE(pool.try_post([&, open] {
    running.set_value();
    open.wait();
  }));
  running.get_future().wait();
  CHECK(pool.try_post([] {}));
  CHECK(pool.try_post([] {}));
  CHECK_FALSE(pool.try_post([] {}));
  gate.set_value();
}
