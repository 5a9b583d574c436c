// How programs run and end.
#include <algorithm>
#include <future>
#include <thread>
#include <vector>

#include "base/text.h"
#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

TEST_CASE("output and exit code") {
  const auto result = python("import sys\nprint('hello')\nsys.exit(3)");
  CHECK(result.stdout_bytes == "hello\n");
  CHECK(result.stderr_bytes.empty());
  CHECK(result.exit_code == 3);
  CHECK_FALSE(result.reason);
  CHECK(result.backend == backend_name());
  CHECK(result.duration.count() > 0);
}

TEST_CASE("the streams stay apart") {
  const auto result = python("import sys\nprint('out')\nprint('err', file=sys.stderr)");
  CHECK(result.stdout_bytes == "out\n");
  CHECK(result.stderr_bytes == "err\n");
}

TEST_CASE("the program is taken byte for byte: line numbers and __future__ hold") {
  const auto result = python("from __future__ import annotations\n\nraise ValueError('x')");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.stderr_bytes, "line 3"));
  CHECK_FALSE(contains(result.stderr_bytes, "llm-sandbox"));
}

TEST_CASE("stdin is at its end") { CHECK(python("import sys\nprint(repr(sys.stdin.read()))").stdout_bytes == "''\n"); }

TEST_CASE("partial output survives a timeout, unbuffered") {
  const auto result = python("print('before', end='')\nimport time\ntime.sleep(600)", 1s);
  CHECK(result.stdout_bytes == "before");
  CHECK(result.reason == Reason::kTimeout);
  CHECK(result.exit_code == 124);
  CHECK_FALSE(result.notes.empty());
}

TEST_CASE("the whole tree is killed at a timeout") {
  const std::string marker = unique_marker();
  const auto result = python(
      "import subprocess, sys, time\n"
      "for session in (True, False):\n"
      "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '" +
          marker +
          "'], start_new_session=session)\n"
          "print('started')\n"
          "time.sleep(600)",
      3s);
  CHECK(result.stdout_bytes == "started\n");
  CHECK(result.reason == Reason::kTimeout);
  CHECK(processes_with(marker).empty());
}

TEST_CASE("the run ends with its main process, and what that left running is killed") {
  const std::string marker = unique_marker();
  const auto result = python(
      "import os, sys, time\n"
      "if os.fork() == 0:\n"
      "    os.setsid()\n"
      "    if os.fork() == 0:\n"
      "        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '" +
      marker +
      "'])\n"
      "    time.sleep(600)\n"
      "print('done')");
  CHECK(result.stdout_bytes == "done\n");
  CHECK_FALSE(result.reason);
  CHECK(processes_with(marker).empty());
}

TEST_CASE("any bytes come through") {
  const auto result = python("import os\nos.write(1, bytes(range(256)))");
  REQUIRE(result.stdout_bytes.size() == 256);
  for (int i = 0; i < 256; ++i) CHECK(static_cast<unsigned char>(result.stdout_bytes[static_cast<size_t>(i)]) == i);
}

TEST_CASE("long output keeps its beginning and its end") {
  const auto result = python("print('begin')\nfor i in range(400000): print('0123456789')\nprint('end')");
  CHECK(result.truncated);
  CHECK(result.stdout_bytes.starts_with("begin\n"));
  CHECK(result.stdout_bytes.ends_with("end\n"));
  CHECK(contains(result.stdout_bytes, "bytes left out"));
  CHECK(result.stdout_bytes.size() < (1 << 20) + 200);
  CHECK_FALSE(result.reason);
}

TEST_CASE("an output flood is stopped") {
  const auto result = python("import os\nblock = b'y' * 65536\nwhile True: os.write(1, block)");
  CHECK(result.reason == Reason::kOutputLimit);
  CHECK(result.truncated);
}

TEST_CASE("a signal is named") {
  const auto result = python("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)");
  CHECK(result.reason == Reason::kSignal);
  CHECK(result.exit_code == 139);
}

TEST_CASE("a cancelled run ends with what it had printed") {
  std::stop_source stop;
  RequestContext context;
  context.stop = stop.get_token();
  context.on_output = [&](Stream, std::string_view) { stop.request_stop(); };
  ExecutionRequest request;
  const std::string marker = unique_marker();
  request.code =
      "import subprocess, sys\nprint('up')\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', '" +
      marker + "'])";
  request.timeout = 600s;
  const auto result = engine().run(request, context);
  CHECK(result.reason == Reason::kCancelled);
  CHECK(result.stdout_bytes.starts_with("up"));  // -u writes the newline on its own
  engine().drain(Deadline::after(10s));
  CHECK(processes_with(marker).empty());
}

TEST_CASE("runs happen side by side and keep their answers apart") {
  std::vector<std::future<ExecutionResult>> results;
  for (int i = 0; i < 6; ++i)
    results.push_back(std::async(std::launch::async, [i] { return python("print('run " + std::to_string(i) + "')"); }));
  for (int i = 0; i < 6; ++i)
    CHECK(results[static_cast<size_t>(i)].get().stdout_bytes == "run " + std::to_string(i) + "\n");
}

TEST_CASE("javascript") {
  ExecutionRequest request;
  request.language = " JS ";
  request.code = "console.log([1, 2].map(x => x * 2)); process.exit(4)";
  const auto result = engine().run(request, {});
  CHECK(result.stdout_bytes == "[ 2, 4 ]\n");
  CHECK(result.exit_code == 4);
  CHECK(result.language == "javascript");

  request.code = "import { basename } from 'node:path';\nconsole.log(await Promise.resolve(basename('/a/b')));";
  CHECK(engine().run(request, {}).stdout_bytes == "b\n");
}

TEST_CASE("a language that is unknown or not there yet is told, with what there is") {
  ExecutionRequest request;
  request.language = "cobol";
  auto result = engine().run(request, {});
  CHECK(result.reason == Reason::kInvalidArgument);
  CHECK(contains(result.stderr_bytes, "python"));
}

TEST_CASE("figures come back in order, shown or not, and files of the workspace once each") {
  const LanguageReport report = engine().report(*engine().languages().find("python"));
  const bool has_matplotlib = std::any_of(report.libraries.begin(), report.libraries.end(),
                                          [](const auto& one) { return one.starts_with("matplotlib "); });
  if (!has_matplotlib) {
    MESSAGE("skipped: matplotlib");
    return;
  }
  const auto result = python(
      "import matplotlib.pyplot as plt\n"
      "plt.figure(figsize=(2, 1)); plt.plot([1, 2]); plt.show()\n"
      "plt.figure(figsize=(3, 1)); plt.plot([1, 2]); plt.savefig('saved.png', dpi=50); plt.close()\n"
      "plt.figure(figsize=(4, 1)); plt.plot([2, 1])\n"
      "print('drawn')");
  CHECK(result.stdout_bytes == "drawn\n");
  CHECK(result.stderr_bytes.empty());
  REQUIRE(result.artifacts.size() == 3);
  for (const auto& artifact : result.artifacts) CHECK(artifact.mime_type == "image/png");
  CHECK(result.artifacts[1].name == "saved.png");
  // The width stands at byte 16 of a PNG: the pictures are in the order in which they were drawn.
  const auto width = [&](size_t i) {
    const auto& png = result.artifacts[i].content;
    return static_cast<unsigned char>(png[18]) * 256 + static_cast<unsigned char>(png[19]);
  };
  CHECK(width(0) < width(2));
}
