#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "support.h"

using namespace llm_sandbox;
using namespace llm_sandbox::testing;

namespace {

/// Runs the body against the agent as an ordinary process and, where that can be had, as PID 1.
void in_each_place(const std::function<void(Session&)>& body) {
  for (const Place place : {Place::kProcess, Place::kPidOne}) {
    if (place == Place::kPidOne && !has_pid_namespaces()) continue;
    CAPTURE(static_cast<int>(place));
    Session session(std::make_unique<AgentSandbox>(place));
    body(session);
    // Whatever happened before, the agent is fit for the next program.
    CHECK(run(session, shell("echo still here")).out == "still here\n");
  }
}

/// Soft and hard limit of the core files of a program: 1, unless we may not have that much ourselves.
std::string core_limit() {
  rlimit ours{};
  getrlimit(RLIMIT_CORE, &ours);
  return ours.rlim_max == 0 ? "0 0" : "1 1";
}

/// A command line argument that nothing else on this machine has: "sleep" takes it for about a day.
std::string unique_mark() {
  static int count = 0;
  return std::to_string(900000000 + getpid()) + ".0" + std::to_string(++count);
}

}  // namespace

TEST_CASE("a program's output, exit code and streams arrive apart") {
  in_each_place([](Session& session) {
    const Ran ran = run(session, shell("echo out; echo err >&2; exit 3"));
    REQUIRE(ran.end);
    CHECK(ran.out == "out\n");
    CHECK(ran.err == "err\n");
    CHECK(ran.end->cause == EndCause::kExited);
    CHECK(ran.end->exit_code == 3);
    CHECK(ran.end->signal == 0);
    CHECK(ran.end->max_rss_bytes > 0);
    CHECK(ran.end->wall_us > 0);
    CHECK_FALSE(ran.end->process_limit_seen);
    CHECK_FALSE(ran.end->disk_full_seen);

    const Ran killed = run(session, shell("kill -SEGV $$"));
    REQUIRE(killed.end);
    CHECK(killed.end->signal == SIGSEGV);
    CHECK(killed.end->cause == EndCause::kExited);
  });
}

TEST_CASE("stdin is at its end and any bytes pass") {
  Session session(std::make_unique<AgentSandbox>());
  CHECK(run(session, shell("cat; printf '\\377\\000\\376x'")).out == "\xff\0\xfex"s);
}

TEST_CASE("the environment is exactly the one given, and no descriptor, blocked or ignored signal is inherited") {
  in_each_place([](Session& session) {
    Command command = shell("");
    command.argv = {"/usr/bin/env"};
    command.environment = {"A=1", "B=two words"};
    CHECK(run(session, command).out == "A=1\nB=two words\n");
    CHECK(run(session, shell("exec ls /proc/self/fd")).out == "0\n1\n2\n3\n");  // 3 is the folder that ls reads
    const std::string masks = run(session, shell("exec grep -E 'Sig(Blk|Ign)' /proc/self/status")).out;
    CHECK(masks == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  });
}

TEST_CASE("a program runs in a session of its own, in its folder, and is the first to go when memory runs out") {
  TemporaryFolder folder;
  in_each_place([&](Session& session) {
    const Ran ran =
        run(session, shell("pwd; [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo own session\n"
                           "cat /proc/$$/oom_score_adj; awk '/^Max core/ { print $5, $6 }' /proc/self/limits; umask",
                           folder.path()));
    CHECK(ran.out == folder.path() + "\nown session\n1000\n" + core_limit() + "\n0022\n");
  });
}

TEST_CASE("a program cannot look into the agent") {
  if (!has_pid_namespaces()) return;
  Session session(std::make_unique<AgentSandbox>(Place::kPidOne));
  const Ran ran = run(session, shell("cat /proc/1/environ; readlink /proc/1/fd/3 /proc/1/fd/4; cat /proc/1/fd/3; head "
                                     "-c1 /proc/1/mem; cat /proc/self/environ"));
  CAPTURE(ran.err);
  CHECK(ran.out.find("SECRET") == std::string::npos);
  CHECK(ran.err.find("/proc/1/environ: Permission denied") != std::string::npos);
  CHECK(ran.out.find("socket:") == std::string::npos);
  CHECK(ran.err.find("/proc/1/fd/3: Permission denied") != std::string::npos);
  CHECK(ran.err.find("'/proc/1/mem' for reading: Permission denied") != std::string::npos);
}

TEST_CASE("what cannot be started says why") {
  TemporaryFolder folder;
  Session session(std::make_unique<AgentSandbox>());

  Command missing = shell("");
  missing.argv = {"no-such-program"};
  const auto not_found = run(session, missing).end;
  REQUIRE_FALSE(not_found);
  CHECK(not_found.error().code == ErrorCode::kNotFound);
  CHECK(not_found.error().sentence.find("no-such-program") != std::string::npos);

  std::ofstream(folder.path("plain")) << "no program";
  Command not_executable = shell("");
  not_executable.argv = {folder.path("plain")};
  const auto refused = run(session, not_executable).end;
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK(refused.error().sentence.find("Permission denied") != std::string::npos);

  const auto no_folder = run(session, shell("true", "/no/such/folder")).end;
  REQUIRE_FALSE(no_folder);
  CHECK(no_folder.error().code == ErrorCode::kNotFound);
  CHECK(no_folder.error().sentence.find("/no/such/folder") != std::string::npos);

  Command zero_byte = shell("true");
  zero_byte.argv.push_back("a\0b"s);
  CHECK_FALSE(run(session, zero_byte).end);
  Command nameless = shell("");
  nameless.argv.clear();
  CHECK_FALSE(run(session, nameless).end);

  Command too_long = shell("true");
  too_long.argv.push_back(std::string(kMaxControlBytes, 'x'));
  const auto too_large = run(session, too_long).end;
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == ErrorCode::kTooLarge);

  CHECK(run(session, shell("echo fine")).out == "fine\n");
}

TEST_CASE("the time limit keeps what was printed") {
  in_each_place([](Session& session) {
    Command command = shell("echo before; sleep 60");
    command.limits.wall = 200ms;
    const Ran ran = run(session, command);
    REQUIRE(ran.end);
    CHECK(ran.end->cause == EndCause::kTimeout);
    CHECK(ran.end->signal == SIGKILL);
    CHECK(ran.end->wall_us >= 200'000);
    CHECK(ran.out == "before\n");
  });
}

TEST_CASE("the whole tree ends with the main process: background, own session, orphaned twice, stopped") {
  in_each_place([](Session& session) {
    const std::string mark = unique_mark();
    const std::string leave = "sleep " + mark;
    const Ran ran = run(session, shell(leave + " & setsid " + leave + " & (setsid sh -c '" + leave +
                                       " & exit' &) ; sh -c '" + leave + " & kill -STOP $!'; echo done"));
    REQUIRE(ran.end);
    CHECK(ran.out == "done\n");  // they held the pipe, and yet the run has ended
    CHECK(ran.end->cause == EndCause::kExited);
    CHECK(ran.end->exit_code == 0);
    CHECK(processes_with(mark).empty());
  });
}

TEST_CASE("a time limit ends the whole tree, one that keeps forking too") {
  in_each_place([](Session& session) {
    const std::string mark = unique_mark();
    Command command =
        shell("f() { while :; do setsid sh -c 'sleep 0.01; : " + mark + "' & sleep 0.01; done; }; f & f & f & wait");
    command.limits.wall = 300ms;
    const Ran ran = run(session, command);
    REQUIRE(ran.end);
    CHECK(ran.end->cause == EndCause::kTimeout);
    CHECK(processes_with(mark).empty());
  });
}

TEST_CASE("an output flood is cut at its limit, exactly") {
  in_each_place([](Session& session) {
    Command command = shell("yes");
    command.limits.output_bytes = 300'000;
    const Ran ran = run(session, command);
    REQUIRE(ran.end);
    CHECK(ran.end->cause == EndCause::kOutputLimit);
    CHECK(ran.out.size() + ran.err.size() == 300'000);

    Command at_the_limit = shell("head -c 300000 /dev/zero");
    at_the_limit.limits.output_bytes = 300'000;
    const Ran exact = run(session, at_the_limit);
    REQUIRE(exact.end);
    CHECK(exact.end->cause == EndCause::kExited);
    CHECK(exact.out.size() == 300'000);
  });
}

TEST_CASE("much output arrives whole") {
  Session session(std::make_unique<AgentSandbox>());
  const Ran ran = run(session, shell("head -c 50000000 /dev/zero; head -c 3000000 /dev/zero >&2"));
  REQUIRE(ran.end);
  CHECK(ran.end->cause == EndCause::kExited);
  CHECK(ran.out.size() == 50'000'000);
  CHECK(ran.err.size() == 3'000'000);
}

TEST_CASE("a server that does not read delays neither the time limit nor a kill") {
  for (const bool by_kill : {false, true}) {
    CAPTURE(by_kill);
    AgentSandbox sandbox;
    Channel& channel = sandbox.channel();
    ExecMessage message;
    message.argv = {"yes"};
    message.environment = {"PATH=/usr/bin:/bin"};
    message.folder = "/";
    message.wall_ms = by_kill ? 0 : 300;
    REQUIRE(channel.send(FrameType::kExec, 1, encode(message), soon(), {}));
    const auto started = channel.receive(soon(), {});
    REQUIRE(started);
    REQUIRE(started->type == FrameType::kStarted);
    const std::string process = "/proc/" + std::to_string(decode<StartedMessage>(started->payload)->pid);
    REQUIRE(fs::exists(process));
    if (by_kill) REQUIRE(channel.send(FrameType::kKill, 1, {}, soon(), {}));
    CHECK(eventually([&] { return !fs::exists(process); }));

    Result<Frame> last = channel.receive(soon(), {});
    while (last && last->type == FrameType::kStdout) last = channel.receive(soon(), {});
    REQUIRE(last);
    REQUIRE(last->type == FrameType::kExited);
    CHECK(decode<ExitedMessage>(last->payload)->cause == (by_kill ? EndCause::kKilled : EndCause::kTimeout));
  }
}

TEST_CASE("memory of all processes together is watched") {
  in_each_place([](Session& session) {
    const std::string hold = "head -c 40000000 /dev/zero | tail -c 40000000 | sleep 60 & ";
    Command command = shell(hold + hold + hold + "wait");
    command.limits.memory_bytes = 60'000'000;
    const Ran ran = run(session, command);
    REQUIRE(ran.end);
    CHECK(ran.end->cause == EndCause::kMemoryLimit);
    CHECK(ran.end->signal == SIGKILL);

    command = shell("head -c 100000000 /dev/zero | tail -c 90000000 >/dev/null");
    command.limits.memory_bytes = 60'000'000;
    const Ran single = run(session, command);
    REQUIRE(single.end);
    const bool held = single.end->cause == EndCause::kMemoryLimit || single.err.find("exhausted") != std::string::npos;
    CHECK(held);  // by the watch or by RLIMIT_DATA, whichever came first
  });
}

TEST_CASE("memory is counted of a process whose main thread has ended") {
  if (find_in_path("python3", "/usr/bin:/bin").empty()) {
    MESSAGE("skipped: python3");
    return;
  }
  in_each_place([](Session& session) {
    Command command = shell("");
    // Shared memory, which RLIMIT_DATA leaves alone. The interpreter's lock is free while a foreign function runs.
    command.argv = {"python3", "-c",
                    "import ctypes, mmap, threading, time\n"
                    "def hold():\n"
                    "    while 'Z' not in open('/proc/self/stat').read().rsplit(')')[1]: time.sleep(0.01)\n"
                    "    memory = mmap.mmap(-1, 200_000_000)\n"
                    "    for page in range(0, len(memory), 4096): memory[page] = 1\n"
                    "    time.sleep(60)\n"
                    "threading.Thread(target=hold).start()\n"
                    "ctypes.CDLL(None).syscall(" +
                        std::to_string(SYS_exit) + ", 0)\n"};
    command.limits.memory_bytes = 100'000'000;
    const Ran ran = run(session, command);
    REQUIRE(ran.end);
    CHECK(ran.end->cause == EndCause::kMemoryLimit);
    CHECK(ran.err == "");
  });
}

TEST_CASE("a flood of empty files ends a program whose memory is watched") {
  if (!has_pid_namespaces()) return;
  if (find_in_path("python3", "/usr/bin:/bin").empty()) {
    MESSAGE("skipped: python3");
    return;
  }
  Session session(std::make_unique<AgentSandbox>(Place::kPidOne));  // its /dev/shm is a tmpfs of its own
  Command command = shell("");
  command.argv = {"python3", "-c",
                  "import os, sys, time\n"
                  "os.mknod('/dev/shm/file')\n"
                  "for i in range(int(sys.argv[1])): os.link('/dev/shm/file', f'/dev/shm/{i}')\n"
                  "time.sleep(float(sys.argv[2]))\n",
                  "100000", "0.2"};
  command.limits.memory_bytes = uint64_t{512} << 20;
  const Ran few = run(session, command);
  REQUIRE(few.end);
  CHECK(few.end->cause == EndCause::kExited);
  CHECK(few.err == "");
  command.argv[2] =
      "import os\n"
      "for i in range(100_000): os.link('/dev/shm/file', f'/dev/shm/more-{i}')\n"
      "import time; time.sleep(60)\n";
  const Ran many = run(session, command);
  REQUIRE(many.end);
  CHECK(many.end->cause == EndCause::kDiskLimit);
}

TEST_CASE("as many threads as are allowed find room for their stacks") {
  if (!has_pid_namespaces()) return;
  if (find_in_path("python3", "/usr/bin:/bin").empty()) {
    MESSAGE("skipped: python3");
    return;
  }
  Session session(std::make_unique<AgentSandbox>(Place::kPidOne));
  Command command = shell("");
  command.argv = {"python3", "-c",
                  "import resource, threading\n"
                  "print(resource.getrlimit(resource.RLIMIT_STACK)[0])\n"
                  "done = threading.Event()\n"
                  "threads = [threading.Thread(target=done.wait) for _ in range(100)]\n"
                  "for thread in threads: thread.start()\n"
                  "done.set()\n"};
  command.limits.memory_bytes = uint64_t{512} << 20;
  command.limits.processes = 128;
  const Ran ran = run(session, command);
  REQUIRE(ran.end);
  CHECK(ran.err == "");
  CHECK(ran.out == "2097152\n");
  CHECK(ran.end->exit_code == 0);
}

TEST_CASE("memory that processes share after a fork is counted once") {
  if (find_in_path("python3", "/usr/bin:/bin").empty()) {
    MESSAGE("skipped: python3");
    return;
  }
  Session session(std::make_unique<AgentSandbox>());
  Command command = shell("");
  command.argv = {"python3", "-c",
                  "import os, time\n"
                  "held = b'x' * 40_000_000\n"
                  "for _ in range(4):\n"
                  "    if os.fork() == 0: time.sleep(60)\n"
                  "time.sleep(0.5)\n"};
  command.limits.memory_bytes = 150'000'000;
  const Ran ran = run(session, command);
  REQUIRE(ran.end);
  CHECK(ran.end->cause == EndCause::kExited);
  CHECK(ran.err == "");
}

TEST_CASE("a full set of processes is noticed, while they run and when the main process leaves them behind") {
  in_each_place([](Session& session) {
    // Outside a user namespace the limit counts all that the user runs; only root's processes are never refused by it.
    const bool alone = static_cast<AgentSandbox*>(session.sandbox())->place() == Place::kPidOne;
    if (!alone && geteuid() != 0) {
      MESSAGE("skipped: RLIMIT_NPROC as an ordinary user without a user namespace");
      return;
    }
    Command command = shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.4 & done; wait");
    command.limits.processes = 12;
    const Ran waited = run(session, command);
    REQUIRE(waited.end);
    CHECK(waited.end->process_limit_seen);

    command.argv.back() = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done";
    const Ran left = run(session, command);
    REQUIRE(left.end);
    CHECK(left.end->process_limit_seen);

    command.argv.back() = "sleep 0.2";
    CHECK_FALSE(run(session, command).end->process_limit_seen);
  });
}

TEST_CASE("a file that grows too large ends its writer, open files are limited, limits cannot be raised again") {
  TemporaryFolder folder;
  Session session(std::make_unique<AgentSandbox>());
  Command command = shell("exec head -c 2000000 /dev/zero >big", folder.path());
  command.limits.file_bytes = 1'000'000;
  const Ran ran = run(session, command);
  REQUIRE(ran.end);
  CHECK(ran.end->signal == SIGXFSZ);
  CHECK(fs::file_size(folder.path("big")) <= 1'000'000);

  command = shell("ulimit -Hn; ulimit -n");
  command.limits.open_files = 40;
  CHECK(run(session, command).out == "40\n40\n");
}

TEST_CASE("a full disk is noticed") {
  if (!has_pid_namespaces()) return;
  // A tmpfs of 1 MiB in a mount namespace of the program's own cannot be seen by the agent, so the agent is put into
  // it.
  const Streams streams = connected_streams();
  auto agent = spawn({"/usr/bin/bwrap",
                      {"bwrap", "--unshare-user", "--bind", "/", "/", "--dev", "/dev", "--size", "1048576", "--tmpfs",
                       "/mnt", "--", LLM_SANDBOX_AGENT},
                      {},
                      {{streams.theirs.get(), 0}, {streams.theirs.get(), 1}}});
  REQUIRE(agent);
  Channel channel(UniqueFd(dup(streams.ours.get())));
  REQUIRE(channel.receive(soon(), {}));
  ExecMessage message;
  message.argv = {"sh", "-c", "head -c 2000000 /dev/zero >/mnt/big"};
  message.environment = {"PATH=/usr/bin:/bin"};
  message.folder = "/mnt";
  REQUIRE(channel.send(FrameType::kExec, 1, encode(message), soon(), {}));
  Result<Frame> frame = channel.receive(soon(), {});
  while (frame && frame->type != FrameType::kExited) frame = channel.receive(soon(), {});
  REQUIRE(frame);
  CHECK(decode<ExitedMessage>(frame->payload)->disk_full_seen);
}

TEST_CASE("a second program is refused while one runs, files and pings are served meanwhile") {
  TemporaryFolder folder;
  std::ofstream(folder.path("file")) << "content";
  AgentSandbox sandbox;
  Channel& channel = sandbox.channel();
  ExecMessage message;
  message.argv = {"sleep", "60"};
  message.environment = {"PATH=/usr/bin:/bin"};
  message.folder = "/";
  REQUIRE(channel.send(FrameType::kExec, 1, encode(message), soon(), {}));
  CHECK(channel.receive(soon(), {})->type == FrameType::kStarted);

  REQUIRE(channel.send(FrameType::kExec, 2, encode(message), soon(), {}));
  auto frame = channel.receive(soon(), {});
  REQUIRE(frame);
  REQUIRE(frame->type == FrameType::kError);
  CHECK(frame->id == 2);
  CHECK(decode<ErrorMessage>(frame->payload)->error_number == EBUSY);

  PathMessage get;
  get.root = folder.path();
  get.path = "file";
  get.max_bytes = 100;
  REQUIRE(channel.send(FrameType::kGetFile, 3, encode(get), soon(), {}));
  CHECK(channel.receive(soon(), {})->type == FrameType::kEntry);
  CHECK(channel.receive(soon(), {})->payload == "content");
  CHECK(channel.receive(soon(), {})->type == FrameType::kDone);

  REQUIRE(channel.send(FrameType::kPing, 4, {}, soon(), {}));
  CHECK(channel.receive(soon(), {})->type == FrameType::kPong);

  REQUIRE(channel.send(FrameType::kExec, 5, "no map", soon(), {}));
  CHECK(channel.receive(soon(), {})->type == FrameType::kError);

  REQUIRE(channel.send(FrameType::kKill, 99, {}, soon(), {}));  // nobody's id: nothing happens
  REQUIRE(channel.send(FrameType::kKill, 1, {}, soon(), {}));
  frame = channel.receive(soon(), {});
  REQUIRE(frame);
  REQUIRE(frame->type == FrameType::kExited);
  CHECK(decode<ExitedMessage>(frame->payload)->cause == EndCause::kKilled);
}

TEST_CASE("the agent and all it started end with the stream, and at nonsense on it") {
  const std::string mark = unique_mark();
  const auto start = [&](AgentSandbox& sandbox) {
    ExecMessage message;
    message.argv = {"sh", "-c", "setsid sleep " + mark + " & sleep " + mark};
    message.environment = {"PATH=/usr/bin:/bin"};
    message.folder = "/";
    REQUIRE(sandbox.channel().send(FrameType::kExec, 1, encode(message), soon(), {}));
    REQUIRE(eventually([&] { return processes_with(mark).size() >= 3; }));
  };
  SUBCASE("end of the stream") {
    AgentSandbox sandbox;
    start(sandbox);
    sandbox.channel().close();
    CHECK(sandbox.process().wait(soon()));
    CHECK(processes_with(mark).empty());
  }
  SUBCASE("a frame that only agents send") {
    AgentSandbox sandbox;
    start(sandbox);
    REQUIRE(sandbox.channel().send(FrameType::kStdout, 1, "x", soon(), {}));
    CHECK(sandbox.process().wait(soon()));
    CHECK(processes_with(mark).empty());
  }
}

TEST_CASE("the agent speaks over two pipes as well") {
  int to_agent[2];
  int from_agent[2];
  REQUIRE(pipe2(to_agent, O_CLOEXEC) == 0);
  REQUIRE(pipe2(from_agent, O_CLOEXEC) == 0);
  UniqueFd in(to_agent[0]), send_end(to_agent[1]), receive_end(from_agent[0]), out(from_agent[1]);
  auto agent = spawn({LLM_SANDBOX_AGENT, {"agent"}, {}, {{in.get(), 0}, {out.get(), 1}}});
  REQUIRE(agent);
  in.reset();
  out.reset();

  std::string request;
  append_frame(request, FrameType::kPing, 7, {});
  REQUIRE(write(send_end.get(), request.data(), request.size()) == static_cast<ssize_t>(request.size()));
  FrameParser parser;
  std::vector<FrameType> seen;
  char buffer[4096];
  while (seen.size() < 2) {
    const ssize_t count = read(receive_end.get(), buffer, sizeof buffer);
    REQUIRE(count > 0);
    parser.feed({buffer, static_cast<size_t>(count)});
    while (true) {
      const auto frame = parser.next();
      REQUIRE(frame);
      if (!*frame) break;
      seen.push_back((*frame)->type);
    }
  }
  CHECK(seen == std::vector{FrameType::kReady, FrameType::kPong});
  send_end.reset();
  CHECK(agent->wait(soon()));
}
