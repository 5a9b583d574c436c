#include "base/process.h"

#include <doctest/doctest.h>
#include <signal.h>

using namespace llm_sandbox;
using namespace std::chrono_literals;

namespace {
SpawnSpec shell(const std::string& script) {
  return SpawnSpec{"/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, {}};
}
}  // namespace

TEST_CASE("run_and_capture keeps the streams apart and tells how the program ended") {
  const auto result = run_and_capture(shell("echo out; echo err >&2; exit 3"), Deadline::after(10s));
  REQUIRE(result);
  CHECK(result->out == "out\n");
  CHECK(result->err == "err\n");
  CHECK(result->exit_code == 3);
  CHECK(run_and_capture(shell("kill -9 $$"), Deadline::after(10s))->exit_code == 128 + SIGKILL);
}

TEST_CASE("run_and_capture gives stdin at its end and an environment with nothing inherited") {
  CHECK(run_and_capture(shell("cat; env | grep -vE '^(PATH|PWD|SHLVL|_)='"), Deadline::after(10s))->out.empty());
}

TEST_CASE("run_and_capture ends with the program, whatever it left running") {
  const auto result = run_and_capture(shell("sleep 60 & echo $!"), Deadline::after(30s));
  REQUIRE(result);
  ::kill(std::stoi(result->out), SIGKILL);
}

TEST_CASE("run_and_capture stops at its deadline and on request") {
  const auto late = run_and_capture(shell("sleep 60"), Deadline::after(50ms));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kTimeout);

  std::stop_source source;
  source.request_stop();
  const auto stopped = run_and_capture(shell("sleep 60"), Deadline::after(30s), source.get_token());
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::kCancelled);
}

TEST_CASE("run_and_capture bounds what it keeps") {
  const auto result = run_and_capture(shell("head -c 100000 /dev/zero"), Deadline::after(30s), {}, 1000);
  REQUIRE(result);
  CHECK(result->out.size() == 1000);
}

TEST_CASE("spawn says what could not be started") {
  const auto child = spawn(SpawnSpec{"/nonexistent/program", {"program"}, {}, {}});
  REQUIRE_FALSE(child);
  CHECK(child.error().sentence.find("/nonexistent/program") != std::string::npos);
}

TEST_CASE("find_in_path ignores relative entries and takes the first executable") {
  CHECK(find_in_path("sh", ".:/nonexistent:/bin:/usr/bin") == "/bin/sh");
  CHECK(find_in_path("no-such-program", "/bin").empty());
}
