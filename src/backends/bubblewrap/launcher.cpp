// The program between the server and bwrap. The server never forks, so what has to happen in the new process before
// bwrap starts happens here, step by step; a step that fails says so in one sentence on stderr and ends with 125. It
// stays until the sandbox is gone.
//
//   llm-sandbox-launcher [--join FILE]... [--id N] --last-descriptor N --lifeline N -- PROGRAM ARGUMENT...
//
//   --join FILE          a "tasks" or cgroup.procs file; this process moves itself there
//   --id N               change to this user and group id, without supplementary groups
//   --last-descriptor N  keep descriptors 0, 1, 2 and 4..N (3 is this program itself)
//   --lifeline N         end the program and all that it started when this pipe does (supervisor.h)
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "backends/bubblewrap/supervisor.h"

namespace {

constexpr int kSetupFailed = 125;
constexpr unsigned kOwnDescriptor = 3;

[[noreturn]] void give_up(const char* what, const char* on) {
  dprintf(STDERR_FILENO, "%s %s: %s\n", what, on, strerror(errno));
  _exit(kSetupFailed);
}

[[noreturn]] void misuse(const char* argument) {
  errno = EINVAL;
  give_up("The launcher was started with a bad argument,", argument);
}

unsigned number(const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long value = strtoul(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value > 0xfffffffeUL) misuse(text);
  return static_cast<unsigned>(value);
}

void join_cgroup(const char* join_file) {
  const int fd = open(join_file, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "0", 1) != 1) give_up("Cannot join the control group", join_file);
  close(fd);
}

/// Only lowered, which anybody may: no core files, no real-time or raised priority, whatever the server itself has.
void limit_resources() {
  const rlimit none{0, 0};
  for (const auto resource : {RLIMIT_RTPRIO, RLIMIT_NICE})
    if (setrlimit(resource, &none) != 0) give_up("Cannot lower the resource limits", "of the sandbox");
  // A core_pattern that is a pipe is fed whatever the limit, 0 included, unless it is exactly 1; no file is that small
  // either. Where the hard limit is 0 already, only 0 is left.
  const rlimit one{1, 1};
  if (setrlimit(RLIMIT_CORE, &one) != 0 && setrlimit(RLIMIT_CORE, &none) != 0)
    give_up("Cannot lower the core limit", "of the sandbox");
}

void become(unsigned id, const char* text) {
  if (setgroups(0, nullptr) != 0) give_up("Cannot drop the supplementary groups for id", text);
  if (setresgid(id, id, id) != 0) give_up("Cannot change to group id", text);
  if (setresuid(id, id, id) != 0) give_up("Cannot change to user id", text);
}

/// bwrap refuses to start with capabilities that it did not get from being setuid (a service with ambient ones, say).
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 || syscall(SYS_capset, &header, none) != 0)
    give_up("Cannot drop", "capabilities");
}

void close_others(unsigned last_kept) {
  if (syscall(SYS_close_range, kOwnDescriptor, kOwnDescriptor, 0) != 0 ||
      syscall(SYS_close_range, last_kept + 1, ~0U, 0) != 0)
    give_up("Cannot close", "the other descriptors (close_range, Linux 5.9)");
}

struct Options {
  const char* id = nullptr;
  const char* last_descriptor = nullptr;
  const char* lifeline = nullptr;
  char** program = nullptr;
};

/// Joins on the way, so that any number of groups needs no storage.
Options parse_and_join(char** argument) {
  Options options;
  for (++argument; *argument != nullptr; argument += 2) {
    const char* const name = *argument;
    char* const value = argument[1];
    if (value == nullptr) misuse(name);
    if (strcmp(name, "--") == 0) {
      options.program = argument + 1;
      return options;
    }
    if (strcmp(name, "--join") == 0)
      join_cgroup(value);
    else if (strcmp(name, "--id") == 0)
      options.id = value;
    else if (strcmp(name, "--last-descriptor") == 0)
      options.last_descriptor = value;
    else if (strcmp(name, "--lifeline") == 0)
      options.lifeline = value;
    else
      misuse(name);
  }
  misuse("(no program)");
}

}  // namespace

int main(int, char** argv) {
  const Options options = parse_and_join(argv);
  if (options.last_descriptor == nullptr) misuse("(no --last-descriptor)");
  if (options.lifeline == nullptr) misuse("(no --lifeline)");
  const unsigned last_kept = number(options.last_descriptor);
  setsid();  // a Ctrl-C on the server's terminal is the server's to handle
  umask(022);
  limit_resources();
  if (options.id != nullptr) become(number(options.id), options.id);
  drop_capabilities();
  close_others(last_kept < kOwnDescriptor ? kOwnDescriptor : last_kept);
  llm_sandbox::supervise(options.program, static_cast<int>(number(options.lifeline)));
}
