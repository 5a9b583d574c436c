#pragma once

#include <sys/types.h>

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace llm_sandbox {

/// How to start a host process. Never forks: posix_spawn.
struct SpawnSpec {
  std::string executable;                ///< absolute path
  std::vector<std::string> argv;         ///< argv[0] included
  std::vector<std::string> environment;  ///< "NAME=value"; nothing is inherited
  std::vector<std::pair<int, int>>
      descriptors;  ///< {ours, the child's}; all others are close-on-exec; 0, 1, 2 not named become /dev/null
};

/// A started child. Its destructor kills it (SIGKILL) and reaps it, so that none is left behind.
/// One thread at a time.
class Child {
 public:
  Child() = default;
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  /// Readable once the child has ended; -1 after it was reaped.
  int pidfd() const { return pidfd_.get(); }
  void kill(int signal) noexcept;
  /// Reaps the child if it ends before the deadline and returns its wait status (as of waitpid).
  std::optional<int> wait(Deadline deadline);

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

Result<Child> spawn(const SpawnSpec& spec);

/// What a short-lived helper program printed.
struct Capture {
  int exit_code = 0;  ///< 128 + n for signal n
  std::string out;
  std::string err;
};

/// Runs a program to its end with stdin at EOF. Output beyond `max_output` bytes a stream is dropped.
/// kTimeout at the deadline, kCancelled on stop; the program is killed in both cases.
Result<Capture> run_and_capture(const SpawnSpec& spec, Deadline deadline, std::stop_token stop = {},
                                size_t max_output = 1 << 20);

/// The first executable file called `name` in the folders of a PATH-like list; empty if there is none.
std::string find_in_path(const std::string& name, const std::string& path_list);
/// All of them, in order.
std::vector<std::string> find_all_in_path(const std::string& name, const std::string& path_list);

}  // namespace llm_sandbox
