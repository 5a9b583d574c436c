// Limits hold and are named.
#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

TEST_CASE("too much memory is named") {
  const auto result = python("blocks = []\nwhile True: blocks.append(bytearray(8 << 20))");
  CHECK(result.reason == Reason::kMemoryLimit);
  CHECK(result.exit_code != 0);
}

TEST_CASE("too much memory in several processes is named") {
  const auto result = python(
      "import os, time\n"
      "for i in range(8):\n"
      "    if os.fork() == 0:\n"
      "        block = b'x' * (128 << 20)\n"
      "        time.sleep(600)\n"
      "codes = [os.waitstatus_to_exitcode(os.wait()[1]) for i in range(8)]\n"
      "raise SystemExit(1)",
      20s);
  // Where only rlimits and the agent's watch hold, the whole tree is stopped; a cgroup kills one process after another.
  CHECK((result.reason == Reason::kMemoryLimit || (result.reason == Reason::kTimeout && result.notes.size() > 1)));
}

TEST_CASE("ordinary use of memory is not hindered") {
  CHECK(python("block = bytearray(256 << 20)\nprint(len(block))").stdout_bytes == "268435456\n");
}

TEST_CASE("a hundred threads find room") {
  const auto result = python(
      "import threading\n"
      "done = threading.Event()\n"
      "threads = [threading.Thread(target=done.wait) for _ in range(100)]\n"
      "for thread in threads: thread.start()\n"
      "done.set()\n"
      "print(len(threads))");
  CHECK(result.stdout_bytes == "100\n");
}

TEST_CASE("too many processes are named") {
  const auto result = python(
      "import subprocess\n"
      "children = [subprocess.Popen(['sleep', '600']) for i in range(1000)]");
  CHECK(result.reason == Reason::kProcessLimit);
  CHECK(result.exit_code != 0);
}

TEST_CASE("a fork bomb ends with its run and hurts nobody") {
  const auto result = python(
      "import os\n"
      "while True:\n"
      "    try: os.fork()\n"
      "    except OSError: pass",
      2s);
  CHECK(result.reason == Reason::kTimeout);
  CHECK(python("print('still here')").stdout_bytes == "still here\n");
}

TEST_CASE("a full disk is named") {
  for (const char* folder : {"/sandbox", "/tmp"}) {
    CAPTURE(folder);
    const auto result = python("import os\nfor i in range(8):\n    with open('" + std::string(folder) +
                               "/' + str(i), 'wb') as f:\n        for j in range(64): f.write(bytes(1 << 20))");
    CHECK(result.reason == Reason::kDiskLimit);
  }
}

TEST_CASE("a file that grows beyond all bounds is stopped") {
  const auto result = python("with open('big', 'wb') as f:\n    f.seek(1 << 40)\n    f.write(b'x')");
  CHECK(result.exit_code != 0);
}

TEST_CASE("the timeout has a maximum and says so") {
  EngineConfig config;
  config.max_timeout = 1s;
  const auto small = engine_with(std::move(config));
  ExecutionRequest request;
  request.code = "import time\ntime.sleep(600)";
  request.timeout = 500s;
  const auto result = small->run(request, {});
  CHECK(result.reason == Reason::kTimeout);
  CHECK(contains(result.notes.front(), "lowered to 1 s"));
}

TEST_CASE("a configured memory limit holds") {
  EngineConfig config;
  config.runtime->memory_bytes = uint64_t{64} << 20;
  const auto small = engine_with(std::move(config));
  ExecutionRequest request;
  request.code = "block = bytearray(128 << 20)\nprint(len(block))";
  CHECK(small->run(request, {}).reason == Reason::kMemoryLimit);
}
