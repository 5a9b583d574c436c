#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "backends/bubblewrap/cgroups.h"
#include "backends/bubblewrap/host_ids.h"
#include "backends/bubblewrap/start.h"
#include "base/wait.h"

namespace llm_sandbox::test {

/// What a program printed that ran where the agent usually does: as PID 1 of a real sandbox.
struct Ran {
  std::string out;
  std::string err;
  int status = -1;  ///< of waitpid
};

struct RunOptions {
  std::vector<std::string> runtime_mounts;
  std::vector<SandboxFile> files;
  std::vector<std::string> join_files;
  bool share_network = false;
  bool memory_is_held = true;
  uint64_t disk_bytes = uint64_t{64} << 20;
  std::vector<std::string> handed_over;  ///< host files that become the sandbox's user's own
};

inline std::string read_to_end(int fd, Deadline deadline) {
  std::string text;
  char buffer[4096];
  const StopWakeup no_stop{std::stop_token{}};
  while (wait_for(fd, POLLIN, deadline, no_stop) == WaitResult::kReady) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

inline const Toolbox& toolbox() {
  static const Toolbox tools = Toolbox::prepare("/usr/bin:/bin", "").value();
  return tools;
}

/// Output must fit in a pipe (64 KiB) each.
inline Ran run_in_sandbox(std::vector<std::string> program, const RunOptions& options = {}) {
  using namespace std::chrono_literals;
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return {};
  UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  UniqueFd err_read(err[0]);
  UniqueFd err_write(err[1]);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));

  std::optional<HostId> id;
  StartRequest request;
  if (geteuid() == 0) {
    id = HostIds::of_host().claim().value();
    request.host_id = id->id();
    for (const auto& path : options.handed_over)
      if (chown(path.c_str(), id->id(), id->id()) != 0) return {};
  }
  request.runtime_mounts = options.runtime_mounts;
  request.files = &options.files;
  request.join_files = options.join_files;
  request.share_network = options.share_network;
  request.memory_is_held = options.memory_is_held;
  request.disk_bytes = options.disk_bytes;
  request.program = std::move(program);
  request.input = null.get();
  request.output = out_write.get();
  request.errors = err_write.get();
  auto started = start(toolbox(), request).value();
  out_write.reset();
  err_write.reset();
  Ran ran;
  ran.out = read_to_end(out_read.get(), Deadline::after(60s));
  ran.err = read_to_end(err_read.get(), Deadline::after(60s));
  ran.status = started.monitor.wait(Deadline::after(60s)).value_or(-1);
  return ran;
}

inline Ran run_shell(const std::string& script, const RunOptions& options = {}) {
  return run_in_sandbox({"/bin/sh", "-c", script}, options);
}

inline Ran run_python(const std::string& script, const RunOptions& options = {}) {
  return run_in_sandbox({"/usr/bin/python3", "-I", "-c", script}, options);
}

}  // namespace llm_sandbox::test
