#include "sandbox/session.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

#include "support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint32_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

template <typename T>
ErrorCode code_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().code;
}

/// The next frame of the server as the fake agent sees it; nothing once the stream is closed.
std::optional<Frame> next_request(int fd, FrameParser& parser) {
  char buffer[4096];
  while (true) {
    auto frame = parser.next();
    if (!frame) return std::nullopt;
    if (*frame) return std::move(**frame);
    const ssize_t count = recv(fd, buffer, sizeof buffer, 0);
    if (count <= 0) return std::nullopt;
    parser.feed({buffer, static_cast<size_t>(count)});
  }
}

bool send_bytes(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool answer(int fd, FrameType type, uint32_t id, std::string_view payload = {}) {
  std::string bytes;
  append_frame(bytes, type, id, payload);
  return send_bytes(fd, bytes);
}

/// A session with a fake agent that waits for one request, plays its part and then reads until the stream is closed.
Session fake(std::function<void(int fd, uint32_t id)> part) {
  return Session(std::make_unique<FakeAgentSandbox>([part = std::move(part)](int fd) {
    FrameParser parser;
    if (const auto request = next_request(fd, parser)) part(fd, request->id);
    while (next_request(fd, parser)) {
    }
  }));
}

std::string started() { return encode(StartedMessage{1}); }
std::string entry(const std::string& path, EntryType type = EntryType::kFile, uint64_t size = 1) {
  return encode(EntryMessage{path, type, 0644, size, 0, ""});
}

Command quick(std::chrono::milliseconds wall = 20s) {
  Command command = shell("true");
  command.limits.wall = wall;
  command.limits.output_bytes = 100'000;
  return command;
}

}  // namespace

TEST_CASE("files go in and come out byte for byte") {
  TemporaryFolder root;
  Session session(std::make_unique<AgentSandbox>());
  std::string big(3 << 20, '\0');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 2654435761u >> 13);
  for (const auto& [path, content] : std::vector<std::pair<std::string, std::string>>{
           {"empty", ""}, {"main.py", "print(1)\n"}, {"a/b/c/d/e/f/big.bin", big}, {"a/na\xffme \n", "x\0y"s}}) {
    CAPTURE(path);
    REQUIRE(session.put_file(path, content, 0640, root.path()));
    CHECK(content_of(root.path(path)) == content);
    CHECK(mode_of(root.path(path)) == 0640);
    const auto back = session.get_file(path, content.size(), root.path());
    REQUIRE(back);
    CHECK(*back == content);
  }
  REQUIRE(session.put_file("main.py", "shorter", 0755, root.path()));
  CHECK(content_of(root.path("main.py")) == "shorter");
  CHECK(mode_of(root.path("main.py")) == 0755);
}

TEST_CASE("folders and links are made, and listed in order with what they are") {
  TemporaryFolder root;
  Session session(std::make_unique<AgentSandbox>());
  REQUIRE(session.make_folder("b/inner", root.path()));
  REQUIRE(session.make_folder("b/inner", root.path()));  // it is there: fine
  REQUIRE(session.make_folder("", root.path()));
  REQUIRE(session.put_file("b/file", "12345", 0600, root.path()));
  REQUIRE(session.put_file("b.txt", "", 0644, root.path()));
  REQUIRE(session.make_symlink("links/out", "/etc/passwd", root.path()));
  REQUIRE(mkfifo(root.path("a-fifo").c_str(), 0600) == 0);

  const auto entries = session.list(root.path(), 100, 10);
  REQUIRE(entries);
  std::vector<std::string> paths;
  for (const auto& each : *entries) paths.push_back(each.path);
  CHECK(paths == std::vector<std::string>{"a-fifo", "b", "b/file", "b/inner", "b.txt", "links", "links/out"});
  CHECK((*entries)[0].type == EntryType::kOther);
  CHECK((*entries)[1].type == EntryType::kFolder);
  CHECK((*entries)[1].mode == 0755);
  CHECK((*entries)[2].type == EntryType::kFile);
  CHECK((*entries)[2].size == 5);
  CHECK((*entries)[2].mode == 0600);
  CHECK((*entries)[2].modified_ns > 1'600'000'000'000'000'000);
  CHECK((*entries)[6].type == EntryType::kSymlink);
  CHECK((*entries)[6].target == "/etc/passwd");

  CHECK(session.list(root.path(), 7, 10)->size() == 7);
  CHECK(code_of(session.list(root.path(), 6, 10)) == ErrorCode::kTooLarge);
  CHECK(session.list(root.path(), 100, 0)->size() == 4);  // deeper folders are named, not entered
  CHECK(code_of(session.list(root.path("missing"), 100, 10)) == ErrorCode::kNotFound);
}

TEST_CASE("long lists and deep folders stay within their bounds") {
  TemporaryFolder root;
  Session session(std::make_unique<AgentSandbox>());
  const std::string many = "i=0; while [ $i -lt 3000 ]; do : >f$i; i=$((i+1)); done; ";
  const std::string deep =
      "d=" + std::string(200, 'd') + "; i=0; while [ $i -lt 100 ]; do mkdir $d; cd -P $d; i=$((i+1)); done";
  REQUIRE(run(session, shell(many + deep, root.path())).end);
  const auto entries = session.list(root.path(), 10'000, 1000);
  REQUIRE(entries);
  CHECK(entries->size() > 3000);
  CHECK(entries->size() < 3100);  // 100 levels are too deep to be told
  CHECK(code_of(session.list(root.path(), 2999, 0)) == ErrorCode::kTooLarge);
}

TEST_CASE("a link is followed in no component of a path, whatever is asked for") {
  TemporaryFolder outside;
  TemporaryFolder root;
  std::ofstream(outside.path("secret")) << "secret";
  fs::create_directory_symlink(outside.path(), root.path("door"));
  fs::create_symlink(outside.path("secret"), root.path("link"));
  fs::create_symlink(outside.path("new"), root.path("dangling"));
  fs::create_directory(root.path("inner"));
  fs::create_directory_symlink("../door", root.path("inner/door"));
  Session session(std::make_unique<AgentSandbox>());

  CHECK(code_of(session.get_file("link", 100, root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.get_file("door/secret", 100, root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.get_file("inner/door/secret", 100, root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.put_file("door/new", "x", 0644, root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.make_folder("door/new", root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.make_folder("door", root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.make_symlink("inner/door/new", "x", root.path())) == ErrorCode::kInvalidArgument);
  const auto entries = session.list(root.path(), 100, 10);
  REQUIRE(entries);
  CHECK(entries->size() == 5);
  for (const auto& each : *entries) CHECK(each.path.find("secret") == std::string::npos);

  // What is put takes the place of a link; nothing is written through it.
  REQUIRE(session.put_file("link", "mine", 0644, root.path()));
  REQUIRE(session.put_file("dangling", "mine", 0644, root.path()));
  CHECK(content_of(outside.path("secret")) == "secret");
  CHECK(fs::is_regular_file(fs::symlink_status(root.path("link"))));
  CHECK_FALSE(fs::exists(outside.path("new")));

  // The root itself is our own choice.
  CHECK(*session.get_file("secret", 100, root.path("door")) == "secret");
}

TEST_CASE("a hard link's other names keep their content") {
  TemporaryFolder root;
  std::ofstream(root.path("original")) << "original";
  fs::create_hard_link(root.path("original"), root.path("name"));
  Session session(std::make_unique<AgentSandbox>());
  REQUIRE(session.put_file("name", "new", 0644, root.path()));
  CHECK(content_of(root.path("original")) == "original");
}

TEST_CASE("paths that do not lie plainly below their root are refused") {
  TemporaryFolder root;
  Session session(std::make_unique<AgentSandbox>());
  for (const auto& path : {"../x"s, "a/../../x"s, "/etc/passwd"s, ".."s, "."s, "./x"s, "a//b"s, "a/"s, "a\0b"s, ""s,
                           std::string(5000, 'x')}) {
    CAPTURE(path);
    CHECK(code_of(session.put_file(path, "x", 0644, root.path())) == ErrorCode::kInvalidArgument);
    CHECK(code_of(session.get_file(path, 100, root.path())) == ErrorCode::kInvalidArgument);
  }
  CHECK(code_of(session.get_file("x", 100, "tmp")) == ErrorCode::kInvalidArgument);
  CHECK(fs::is_empty(root.path()));
}

TEST_CASE("only regular files of the size allowed are got, and nothing else is opened") {
  TemporaryFolder root;
  REQUIRE(mkfifo(root.path("fifo").c_str(), 0600) == 0);
  std::ofstream(root.path("eleven")) << "01234567890";
  Session session(std::make_unique<AgentSandbox>());
  CHECK(code_of(session.get_file("fifo", 100, root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.get_file("eleven", 10, root.path())) == ErrorCode::kTooLarge);
  CHECK(session.get_file("eleven", 11, root.path())->size() == 11);
  CHECK(code_of(session.get_file("missing", 10, root.path())) == ErrorCode::kNotFound);
  CHECK(code_of(session.get_file("null", 10, "/dev")) == ErrorCode::kInvalidArgument);
  fs::create_directory(root.path("folder"));
  CHECK(code_of(session.get_file("folder", 100, root.path())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.put_file("folder", "x", 0644, root.path())) == ErrorCode::kInvalidArgument);
  // Files of /proc say that they are empty, and are not: the bound holds while reading, too.
  CHECK(code_of(session.get_file("kallsyms", 1000, "/proc")) == ErrorCode::kTooLarge);

  // A put takes the FIFO's place without opening it.
  REQUIRE(session.put_file("fifo", "file", 0644, root.path()));
  CHECK(content_of(root.path("fifo")) == "file");
}

TEST_CASE("a put that fails leaves the stream in order and no partial file") {
  TemporaryFolder root;
  std::ofstream(root.path("file")) << "";
  Session session(std::make_unique<AgentSandbox>());
  // Refused at once, while three megabytes are on their way.
  CHECK(code_of(session.put_file("file/below", std::string(3 << 20, 'x'), 0644, root.path())) ==
        ErrorCode::kInvalidArgument);
  CHECK(session.put_file("next", "fine", 0644, root.path()));
  CHECK(code_of(session.put_file("full", std::string(100'000, 'x'), 0644, "/proc/self")) != ErrorCode::kProtocol);
  CHECK(session.put_file("next", "fine", 0644, root.path()));
}

TEST_CASE("a stop kills the tree and keeps what was printed") {
  Session session(std::make_unique<AgentSandbox>());
  std::stop_source source;
  std::string out;
  const auto end = session.exec(
      shell("echo $$; sleep 60"),
      [&](Stream, std::string_view bytes) {
        out += bytes;
        source.request_stop();
      },
      source.get_token());
  CHECK(code_of(end) == ErrorCode::kCancelled);
  REQUIRE(out.ends_with("\n"));
  CHECK_FALSE(fs::exists("/proc/" + out.substr(0, out.size() - 1)));
}

TEST_CASE("an agent that is killed is noticed") {
  auto sandbox = std::make_unique<AgentSandbox>();
  AgentSandbox& agent = *sandbox;
  Session session(std::move(sandbox));
  const auto end =
      session.exec(shell("echo $$; sleep 60"), [&](Stream, std::string_view) { agent.process().kill(SIGKILL); }, {});
  CHECK(code_of(end) == ErrorCode::kBackendUnavailable);
  CHECK(code_of(session.get_file("x", 1, "/tmp")) == ErrorCode::kBackendUnavailable);
}

TEST_CASE("a closed session says so") {
  Session session(std::make_unique<AgentSandbox>());
  CHECK_FALSE(session.closed());
  session.close();
  session.close();
  CHECK(session.closed());
  CHECK(code_of(run(session, shell("true")).end) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.put_file("a", "")) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.make_folder("a")) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.make_symlink("a", "b")) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.list("/tmp", 1, 1)) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.get_file("a", 1)) == ErrorCode::kInvalidArgument);
}

TEST_CASE("hostile agent: exec is held to its order") {
  const auto exec_code = [](std::function<void(int, uint32_t)> part) {
    Session session = fake(std::move(part));
    const Ran ran = run(session, quick());
    return code_of(ran.end);
  };
  const auto protocol = ErrorCode::kProtocol;
  CHECK(exec_code([](int fd, uint32_t) { send_bytes(fd, "garbage garbage garbage"); }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) { answer(fd, FrameType::kStarted, id + 1, started()); }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) { answer(fd, FrameType::kStarted, id, "\xa0"); }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) { answer(fd, FrameType::kStdout, id, "early"); }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) { answer(fd, FrameType::kExited, id, encode(ExitedMessage{})); }) ==
        protocol);
  CHECK(exec_code([](int fd, uint32_t id) { answer(fd, FrameType::kReady, id, encode(ReadyMessage{})); }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) { answer(fd, FrameType::kError, id, "no map"); }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kStarted, id, started());
          answer(fd, FrameType::kStarted, id, started());
        }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kStarted, id, started());
          answer(fd, FrameType::kError, id, encode(ErrorMessage{2, "late"}));
        }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kStarted, id, started());
          answer(fd, FrameType::kExited, id, "\xa0");
        }) == protocol);
  CHECK(exec_code([](int fd, uint32_t id) {  // more than the 100,000 bytes allowed
          answer(fd, FrameType::kStarted, id, started());
          while (answer(fd, FrameType::kStdout, id, std::string(kMaxDataBytes, 'x'))) {
          }
        }) == protocol);
  CHECK(exec_code([](int fd, uint32_t) { shutdown(fd, SHUT_RDWR); }) == ErrorCode::kBackendUnavailable);
}

TEST_CASE("hostile agent: its words are made harmless") {
  Session session = fake([](int fd, uint32_t id) {
    answer(fd, FrameType::kError, id, encode(ErrorMessage{2, "\x1b[2J\xff" + std::string(100'000, 'x')}));
  });
  const auto end = run(session, quick()).end;
  CHECK(code_of(end) == ErrorCode::kNotFound);
  CHECK(end.error().sentence.size() < 1000);
  CHECK(end.error().sentence.find('\x1b') == std::string::npos);
  CHECK(end.error().sentence.find('\xff') == std::string::npos);
}

TEST_CASE("hostile agent: silence and endless output end as a timeout, and the sandbox is closed") {
  Session silent = fake([](int, uint32_t) {});
  const Ran nothing = run(silent, quick(10ms));
  REQUIRE(nothing.end);
  CHECK(nothing.end->cause == EndCause::kTimeout);
  CHECK(silent.closed());

  Session flooding = fake([](int fd, uint32_t id) {
    answer(fd, FrameType::kStarted, id, started());
    while (answer(fd, FrameType::kStdout, id)) {  // empty frames: no bound on bytes ever meets them
    }
  });
  const Ran flood = run(flooding, quick(10ms));
  REQUIRE(flood.end);
  CHECK(flood.end->cause == EndCause::kTimeout);
  CHECK(flooding.closed());
}

TEST_CASE("hostile agent: a stop that it ignores closes the sandbox") {
  for (const bool flooding : {false, true}) {
    CAPTURE(flooding);
    Session session = fake([&](int fd, uint32_t id) {
      answer(fd, FrameType::kStarted, id, started());
      answer(fd, FrameType::kStdout, id, "printed");
      while (flooding && answer(fd, FrameType::kStdout, id)) {
      }
    });
    std::stop_source source;
    std::string out;
    const auto end = session.exec(
        quick(),
        [&](Stream, std::string_view bytes) {
          out += bytes;
          source.request_stop();
        },
        source.get_token());
    CHECK(code_of(end) == ErrorCode::kCancelled);
    CHECK(out == "printed");
    CHECK(session.closed());
  }
}

TEST_CASE("hostile agent: file answers are held to what was asked for") {
  const auto get_code = [](std::function<void(int, uint32_t)> part) {
    Session session = fake(std::move(part));
    return code_of(session.get_file("f", 1000, "/tmp"));
  };
  const auto list_code = [](std::function<void(int, uint32_t)> part) {
    Session session = fake(std::move(part));
    return code_of(session.list("/tmp", 3, 3));
  };
  const auto protocol = ErrorCode::kProtocol;
  CHECK(get_code([](int fd, uint32_t id) { answer(fd, FrameType::kData, id, "unannounced"); }) == protocol);
  CHECK(get_code([](int fd, uint32_t id) { answer(fd, FrameType::kDone, id); }) == protocol);
  CHECK(get_code([](int fd, uint32_t id) { answer(fd, FrameType::kEntry, id, entry("g")); }) == protocol);
  CHECK(get_code([](int fd, uint32_t id) { answer(fd, FrameType::kEntry, id, entry("f", EntryType::kFolder)); }) ==
        protocol);
  CHECK(get_code([](int fd, uint32_t id) { answer(fd, FrameType::kEntry, id, entry("f", EntryType::kFile, 1001)); }) ==
        protocol);
  CHECK(get_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kEntry, id, entry("f"));
          while (answer(fd, FrameType::kData, id, std::string(300, 'x'))) {
          }
        }) == protocol);
  CHECK(get_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kEntry, id, entry("f"));
          answer(fd, FrameType::kDone, id, "payload");
        }) == protocol);
  CHECK(get_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kEntry, id, entry("f"));
          answer(fd, FrameType::kError, id, encode(ErrorMessage{EFBIG, "grown"}));
        }) == ErrorCode::kTooLarge);
  CHECK(get_code([](int fd, uint32_t id) {
          answer(fd, FrameType::kEntry, id, entry("f"));
          shutdown(fd, SHUT_RDWR);
        }) == ErrorCode::kBackendUnavailable);

  CHECK(list_code([](int fd, uint32_t id) {
          while (answer(fd, FrameType::kEntry, id, entry("x"))) {
          }
        }) == protocol);
  for (const auto& path : {""s, "/etc/passwd"s, "../x"s, "a/../b"s, "a//b"s, "a\0b"s, std::string(30'000, 'x')})
    CHECK(list_code([&](int fd, uint32_t id) { answer(fd, FrameType::kEntry, id, entry(path)); }) == protocol);
  CHECK(list_code([](int fd, uint32_t id) { answer(fd, FrameType::kEntry, id + 7, entry("x")); }) == protocol);

  Session session = fake([](int fd, uint32_t id) { answer(fd, FrameType::kPong, id); });
  CHECK(code_of(session.put_file("f", "x", 0644, "/tmp")) == protocol);
  // It has ended for good, and the agent's end of the stream as well.
  CHECK(code_of(session.put_file("f", "x", 0644, "/tmp")) == ErrorCode::kBackendUnavailable);
}
