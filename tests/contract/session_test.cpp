// Files in and out, and the life of a sandbox.
#include <algorithm>

#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

TEST_CASE("files go in and come out byte for byte") {
  Session session = open_session();
  std::string binary;
  for (int i = 0; i < 3 << 20; ++i) binary.push_back(static_cast<char>(i * 31 + (i >> 8)));
  const std::pair<std::string, std::string> files[] = {{"empty", ""},
                                                       {"text.txt", "line\n"},
                                                       {"a/b/c/d/e/f/g/deep.bin", std::string("\0\xff\n", 3)},
                                                       {"big.bin", binary}};
  for (const auto& [path, content] : files) {
    CAPTURE(path);
    REQUIRE(session.put_file(path, content));
    const auto back = session.get_file(path, 16 << 20);
    REQUIRE(back);
    CHECK(*back == content);
  }
  const auto entries = session.list(kWorkspace, 100, 20);
  REQUIRE(entries);
  CHECK(std::count_if(entries->begin(), entries->end(),
                      [](const auto& entry) { return entry.type == EntryType::kFile; }) == 4);
  CHECK(session.get_file("nothing", 100).error().code == ErrorCode::kNotFound);
  CHECK(session.get_file("big.bin", 1000).error().code == ErrorCode::kTooLarge);
}

TEST_CASE("a symbolic link that points out is not followed") {
  Session session = open_session();
  REQUIRE(session.make_symlink("link", "/etc/passwd"));
  REQUIRE(session.make_symlink("folder", "/etc"));
  CHECK_FALSE(session.get_file("link", 1 << 20));
  CHECK_FALSE(session.get_file("folder/passwd", 1 << 20));
  CHECK_FALSE(session.put_file("folder/new", "x"));
  CHECK_FALSE(session.get_file("../etc/passwd", 1 << 20));
  const auto entries = session.list(kWorkspace, 100, 20);
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  for (const auto& entry : *entries) CHECK(entry.type == EntryType::kSymlink);
}

TEST_CASE("a sandbox can be closed twice, and says so when it is used afterwards") {
  Session session = open_session();
  session.close();
  session.close();
  CHECK(session.closed());
  const auto put = session.put_file("x", "y");
  REQUIRE_FALSE(put);
  CHECK(put.error().code == ErrorCode::kInvalidArgument);
  CHECK_FALSE(session.get_file("x", 10));
  CHECK_FALSE(session.list(kWorkspace, 10, 1));
  Command command;
  command.argv = {"/bin/true"};
  CHECK_FALSE(session.exec(command, nullptr, {}));
}

TEST_CASE("a program that is not there is told by name") {
  Session session = open_session();
  Command command;
  command.argv = {"/nonexistent/program"};
  const auto exited = session.exec(command, nullptr, {});
  REQUIRE_FALSE(exited);
  CHECK(contains(exited.error().sentence, "/nonexistent/program"));
}

TEST_CASE("several programs run one after another in one session") {
  Session session = open_session();
  Command command;
  command.environment = {"PATH=/usr/bin:/bin"};
  std::string out;
  const auto collect = [&](Stream, std::string_view bytes) { out += bytes; };
  for (int i = 0; i < 3; ++i) {
    command.argv = {"sh", "-c", "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count; cat count"};
    REQUIRE(session.exec(command, collect, {}));
  }
  CHECK(out == "1\n2\n3\n");
}

TEST_CASE("a sandbox asked for after its caller gave up is not made") {
  std::stop_source stop;
  stop.request_stop();
  auto backend = engine().backend();
  REQUIRE(backend);
  const auto sandbox = (*backend)->open(SandboxSpec{}, Deadline::after(30s), stop.get_token());
  REQUIRE_FALSE(sandbox);
  CHECK(sandbox.error().code == ErrorCode::kCancelled);
}
