#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/process.h"
#include "base/wait.h"
#include "sandbox/layer_cache.h"

namespace llm_sandbox::testing {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Long enough for a busy machine; what waits so long has failed.
inline Deadline soon() { return Deadline::after(60s); }

/// Where many files are made and removed at once, however busy the disk is.
const char* const kManyFiles = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

/// A place for a cache that every user may reach; removed at the end, whatever a test has left in it.
class Place {
 public:
  explicit Place(const char* above = "/tmp") {
    std::string name = above + std::string("/llm-sandbox-layers-XXXXXX");
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    chmod(name.c_str(), 0755);
    path_ = name;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    const SpawnSpec spec{
        "/bin/sh", {"sh", "-c", "chmod -R u+rwx \"$0\"; rm -rf \"$0\"", path_}, {"PATH=/usr/bin:/bin"}, {}};
    static_cast<void>(run_and_capture(spec, soon()));
  }

  std::string operator/(const std::string& below) const { return path_ + "/" + below; }
  const std::string& path() const { return path_; }
  std::string cache() const { return path_ + "/cache"; }
  LayerCache::Options options() const {
    LayerCache::Options options;
    options.folder = cache();
    return options;
  }

 private:
  std::string path_;
};

inline LayerDescription packages(const std::string& name) { return {"packages", "python", name, {"3.11", name}}; }

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& text = "x") {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

inline size_t entries_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

inline bool is_root() { return geteuid() == 0; }
constexpr uid_t kSomebody = 1000;  ///< whom root becomes to be an ordinary user

/// Nothing remains of layers that were not made.
inline void check_no_remains(const std::string& cache) {
  CHECK(entries_in(cache + "/making") == 0);
  CHECK(entries_in(cache + "/locks") == entries_in(cache + "/layers"));
}

/// Makes a layer of one file.
inline LayerCache::Make with_file(const std::string& name, const std::string& text = "x") {
  return [=](const std::string& folder, std::stop_token) {
    write_file(folder + "/" + name, text);
    return Result<void>();
  };
}

/// Makes a layer by a shell script.
inline LayerCache::Make with_script(const std::string& script) {
  return [=](const std::string& folder, std::stop_token stop) -> Result<void> {
    const SpawnSpec spec{"/bin/sh", {"sh", "-euc", "cd \"$0\"; " + script, folder}, {"PATH=/usr/bin:/bin"}, {}};
    const auto done = run_and_capture(spec, soon(), stop);
    if (!done) return fail(Error(done.error()));
    if (done->exit_code != 0) return fail(ErrorCode::kInstallFailed, done->err);
    return {};
  };
}

inline LayerCache::Make never_called() {
  return [](const std::string&, std::stop_token) { return Result<void>(fail(ErrorCode::kProtocol, "was made again")); };
}

/// What a test does in a process of its own (a run of this program for the test case at the end of
/// layer_cache_test.cpp). It keeps step with the test by lines.
class Other {
 public:
  using Task = std::function<void(const std::string& place, Other& test)>;
  static std::map<std::string, Task>& tasks() {
    static std::map<std::string, Task> all;
    return all;
  }
  /// For a static variable beside the task.
  static bool define(const std::string& name, Task task) { return tasks().emplace(name, std::move(task)).second; }

  /// In the test: starts the process, under another id where one is named.
  Other(const std::string& task, const std::string& place, uid_t user = geteuid()) {
    int to_child[2];
    int from_child[2];
    if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    const UniqueFd child_in(to_child[0]);
    const UniqueFd child_out(from_child[1]);
    out_.reset(to_child[1]);
    in_.reset(from_child[0]);
    auto child = spawn({"/proc/self/exe",
                        {"unit", "--no-skip", "--minimal", "--test-case=a process of its own"},
                        {"TASK=" + task, "PLACE=" + place, "TASK_USER=" + std::to_string(user)},
                        {{child_in.get(), 3}, {child_out.get(), 4}, {2, 1}, {2, 2}}});
    REQUIRE(child);
    child_ = std::move(*child);
  }
  /// In the process.
  static void run_task() {
    const std::string user = getenv("TASK_USER");
    const auto id = static_cast<uid_t>(std::stoul(user));
    if (id != geteuid()) REQUIRE((setgid(id) == 0 && setuid(id) == 0));
    Other test{UniqueFd(3), UniqueFd(4)};
    tasks().at(getenv("TASK"))(getenv("PLACE"), test);
  }

  void say(const std::string& line) {
    const std::string text = line + "\n";
    REQUIRE(write(out_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  /// Empty when the other side has ended.
  std::string hear() {
    std::string line;
    char letter = 0;
    const StopWakeup never{std::stop_token()};
    while (true) {
      REQUIRE(wait_for(in_.get(), POLLIN, soon(), never) == WaitResult::kReady);
      if (read(in_.get(), &letter, 1) <= 0 || letter == '\n') return line;
      line += letter;
    }
  }
  void kill() {
    child_.kill(SIGKILL);
    REQUIRE(child_.wait(soon()));
  }
  /// Its end by itself, with all checks passed.
  void finish() {
    out_.reset();
    const auto status = child_.wait(soon());
    REQUIRE(status);
    CHECK(*status == 0);
  }

 private:
  Other(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  UniqueFd in_;
  UniqueFd out_;
  Child child_;
};

}  // namespace llm_sandbox::testing
