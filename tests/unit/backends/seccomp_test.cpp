#include "backends/bubblewrap/seccomp.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>

#include <nlohmann/json.hpp>

#include "start_in_sandbox.h"

using namespace llm_sandbox;
using namespace llm_sandbox::test;

namespace {

std::string error_of(std::string_view list) {
  const auto filter = build_seccomp_filter(list);
  return filter ? "" : filter.error().sentence;
}

bool matches(const std::vector<MaskedValue>& blocks, uint32_t number) {
  for (const auto& [mask, value] : blocks)
    if ((number & mask) == value) return true;
  return false;
}

/// Makes raw system calls in the sandbox and says for each: its label and the errno it got (0: it went through).
/// Arguments are Python expressions.
constexpr const char* kCaller = R"(
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(4096)
def call(label, number, *arguments):
    ctypes.set_errno(0)
    filled = [ctypes.c_ulong(a & 0xffffffffffffffff) for a in arguments] + [ctypes.c_ulong(0)] * (6 - len(arguments))
    result = libc.syscall(ctypes.c_long(number), *filled)
    print(label, ctypes.get_errno() if result < 0 else 0)
    return result
)";

struct Call {
  std::string label;
  std::string arguments;  ///< number first
  int error;
};

void check_calls(const std::vector<Call>& calls, const RunOptions& options = {}) {
  std::string script = kCaller;
  std::string expected;
  for (const auto& [label, arguments, error] : calls) {
    script += "call('" + label + "', " + arguments + ")\n";
    expected += label + " " + std::to_string(error) + "\n";
  }
  const auto ran = run_python(script, options);
  CHECK(ran.err == "");
  CHECK(ran.out == expected);
}

std::string number(long system_call) { return std::to_string(system_call); }

}  // namespace

TEST_CASE("everything_but matches all numbers except the given ones") {
  for (const auto& excepted : {std::vector<uint32_t>{1, 2, 10}, {0, 0xffff'ffff}, {0x8000'0000}, {}}) {
    const auto blocks = everything_but(excepted);
    for (const uint32_t value : excepted) CHECK_FALSE(matches(blocks, value));
    size_t missed = 0;
    for (uint32_t bit = 0; bit < 32; ++bit)
      for (const uint32_t base : {0U, 1U, 2U, 10U, 0xffff'ffffU, 0x8000'0000U, 0x1234'5678U}) {
        const uint32_t value = base ^ (1U << bit);
        const bool is_excepted = std::find(excepted.begin(), excepted.end(), value) != excepted.end();
        if (matches(blocks, value) == is_excepted) ++missed;
      }
    CHECK(missed == 0);
  }
  CHECK(everything_but({}) == std::vector<MaskedValue>{{0, 0}});
  CHECK(everything_but({1, 2, 10}).size() < 40);
}

TEST_CASE("the built-in list becomes a filter within the kernel's bound of 4096 instructions") {
  const auto filter = build_seccomp_filter(default_seccomp_list());
  REQUIRE(filter);
  CHECK(filter->system_calls > 60);
  CHECK(filter->program.size() % 8 == 0);
  CHECK(filter->program.size() / 8 < 4096);
}

TEST_CASE("every group of the built-in list says why") {
  const auto list = nlohmann::json::parse(default_seccomp_list());
  for (const auto& group : list.at("groups")) {
    CAPTURE(group.at("name").get<std::string>());
    CHECK(group.at("why").get<std::string>().size() > 20);
  }
}

TEST_CASE("a bad list is refused with the place that is bad") {
  const auto list = [](const std::string& rule) { return R"({"groups":[{"name":"x","rules":[)" + rule + "]}]}"; };
  CHECK(error_of("not json").find("parse error") != std::string::npos);
  CHECK(error_of("{}").find("groups") != std::string::npos);
  CHECK(error_of(list(R"({"calls":["mount"],"action":"KILL"})")).find("'KILL'") != std::string::npos);
  CHECK(error_of(list(R"({"calls":[{"name":"new","number":423}],"action":"EPERM"})")).find("'new'") !=
        std::string::npos);
  CHECK(error_of(list(R"({"calls":[{"name":"new"}],"action":"EPERM"})")).find("number") != std::string::npos);
  CHECK(error_of(R"({"groups":[{"only":"sometimes","rules":[]}]})").find("sometimes") != std::string::npos);
  CHECK(error_of(list(R"({"calls":["mount"]})")).find("action") != std::string::npos);
  CHECK(error_of(list(R"({"calls":["clone"],"action":"EPERM","when":{"argument":6,"one_of":[1]}})")).find("0 to 5") !=
        std::string::npos);
  CHECK(error_of(list(R"({"calls":["clone"],"action":"EPERM","when":{"argument":0,"one_of":["0x100000000"]}})"))
            .find("32-bit") != std::string::npos);
}

TEST_CASE("a name that this libseccomp does not know is reported and does no harm") {
  const auto filter =
      build_seccomp_filter(R"({"groups":[{"rules":[{"calls":["mount","no_such_call"],"action":"EPERM"}]}]})");
  REQUIRE(filter);
  CHECK(filter->unknown_names == std::vector<std::string>{"no_such_call"});
  CHECK(filter->system_calls == 1);
}

TEST_CASE("a call without a name that this libseccomp knows is refused by its number") {
  const auto filter = build_seccomp_filter(
      R"({"groups":[{"rules":[{"calls":[{"name":"no_such_call","number":1000}],"action":"EPERM"}]}]})");
  REQUIRE(filter);
  CHECK(filter->unknown_names.empty());
  CHECK(filter->system_calls == 1);
  CHECK(build_seccomp_filter(default_seccomp_list())->unknown_names.empty());
}

TEST_CASE("calls that make memory without mapping it are restricted only where the watch has to see all") {
  const auto with = build_seccomp_filter(default_seccomp_list(), MemoryGuard::kControlGroup);
  const auto without = build_seccomp_filter(default_seccomp_list(), MemoryGuard::kWatch);
  REQUIRE(with);
  REQUIRE(without);
  CHECK(without->system_calls == with->system_calls + 4);
  CHECK(without->unknown_names.empty());
}

TEST_CASE("in a sandbox the refused system calls fail as the list says") {
  std::vector<Call> calls;
  const auto refused = [&](const char* label, long system_call) {
    calls.push_back({label, number(system_call), EPERM});
  };
  refused("mount", SYS_mount);
  refused("umount2", SYS_umount2);
  refused("pivot_root", SYS_pivot_root);
  refused("chroot", SYS_chroot);
  refused("open_tree", SYS_open_tree);
  refused("move_mount", SYS_move_mount);
  refused("fsopen", SYS_fsopen);
  refused("fsconfig", SYS_fsconfig);
  refused("fsmount", SYS_fsmount);
  refused("fspick", SYS_fspick);
  refused("mount_setattr", 442);
  refused("statmount", 457);
  refused("listmount", 458);
  refused("open_tree_attr", 467);
  refused("setns", SYS_setns);
  refused("ptrace", SYS_ptrace);
  refused("process_vm_readv", SYS_process_vm_readv);
  refused("process_vm_writev", SYS_process_vm_writev);
  refused("process_madvise", 440);
  refused("kcmp", SYS_kcmp);
  refused("pidfd_getfd", 438);
  refused("bpf", SYS_bpf);
  refused("perf_event_open", SYS_perf_event_open);
  refused("userfaultfd", SYS_userfaultfd);
  refused("io_uring_setup", SYS_io_uring_setup);
  refused("io_uring_enter", SYS_io_uring_enter);
  refused("io_uring_register", SYS_io_uring_register);
  refused("add_key", SYS_add_key);
  refused("request_key", SYS_request_key);
  refused("keyctl", SYS_keyctl);
  refused("kexec_load", SYS_kexec_load);
  refused("init_module", SYS_init_module);
  refused("finit_module", SYS_finit_module);
  refused("delete_module", SYS_delete_module);
  refused("open_by_handle_at", SYS_open_by_handle_at);
  refused("name_to_handle_at", SYS_name_to_handle_at);
  refused("quotactl", SYS_quotactl);
  refused("swapon", SYS_swapon);
  refused("swapoff", SYS_swapoff);
  refused("reboot", SYS_reboot);
  refused("acct", SYS_acct);
  refused("syslog", SYS_syslog);
  refused("clock_settime", SYS_clock_settime);
  refused("settimeofday", SYS_settimeofday);
  refused("adjtimex", SYS_adjtimex);
  refused("clock_adjtime", SYS_clock_adjtime);
  refused("vhangup", SYS_vhangup);
  refused("sethostname", SYS_sethostname);
  refused("setdomainname", SYS_setdomainname);
#ifdef __x86_64__
  refused("iopl", SYS_iopl);
  refused("ioperm", SYS_ioperm);
  refused("modify_ldt", SYS_modify_ldt);
  refused("kexec_file_load", SYS_kexec_file_load);
  refused("ustat", SYS_ustat);
  refused("sysfs", SYS_sysfs);
  refused("uselib", SYS_uselib);
#endif
  calls.push_back({"clone3", number(SYS_clone3) + ", 0, 0", ENOSYS});
  check_calls(calls);
}

TEST_CASE("in a sandbox no namespace can be made, with whatever other flags") {
  std::vector<Call> calls;
  for (const uint64_t flag :
       {0x20000ULL, 0x2000000ULL, 0x4000000ULL, 0x8000000ULL, 0x10000000ULL, 0x20000000ULL, 0x40000000ULL}) {
    const std::string with_others = std::to_string(flag | 0x11);
    const std::string with_high_bits = std::to_string(flag | (1ULL << 40));
    calls.push_back({"unshare", number(SYS_unshare) + ", " + std::to_string(flag), EPERM});
    calls.push_back({"clone", number(SYS_clone) + ", " + with_others, EPERM});
    calls.push_back({"clone_high", number(SYS_clone) + ", " + with_high_bits, EPERM});
  }
  calls.push_back({"unshare_time", number(SYS_unshare) + ", 0x80", EPERM});
  calls.push_back({"unshare_files", number(SYS_unshare) + ", 0x400", 0});
  check_calls(calls);
}

TEST_CASE("in a sandbox only ordinary socket families exist, also behind dirty upper halves") {
  std::vector<Call> calls;
  for (int family = 0; family <= 64; ++family) {
    const bool allowed = family == 1 || family == 2 || family == 10;
    for (const char* const upper : {"0", "1 << 32", "0xffffffff << 32"})
      calls.push_back({"family_" + std::to_string(family),
                       number(SYS_socket) + ", " + std::to_string(family) + " | " + upper + ", 2",
                       allowed ? 0 : EAFNOSUPPORT});
  }
  calls.push_back({"high", number(SYS_socket) + ", 0x80000002, 2", EAFNOSUPPORT});
  calls.push_back({"negative", number(SYS_socket) + ", -1, 2", EAFNOSUPPORT});
  check_calls(calls);
}

TEST_CASE("in a sandbox without a memory group no memory can be had that nobody maps") {
  RunOptions watched;
  watched.memory_is_held = false;
  const std::string make_segment = number(SYS_shmget) + ", 0, 4096, 0o1600";
  const std::string make_queue = number(SYS_mq_open) + ", ctypes.addressof(buffer), 0o102, 0o600, 0";
  const std::string make_file = number(SYS_memfd_create) + ", ctypes.addressof(buffer), 0";
  check_calls({{"memfd_create", make_file, ENOSYS},
               {"memfd_secret", "447, 0", ENOSYS},
               {"shmget", make_segment, EPERM},
               {"mq_open", make_queue, EPERM}},
              watched);
  check_calls({{"memfd_create", make_file, 0}, {"shmget", make_segment, 0}});
}

TEST_CASE("in a sandbox there is no MPTCP, also behind dirty upper halves") {
  std::vector<Call> calls;
  for (const int family : {2, 10})
    for (const char* const upper : {"0", "1 << 32", "0xffffffff << 32"}) {
      const std::string begin = number(SYS_socket) + ", " + std::to_string(family) + ", 1, ";
      calls.push_back({"mptcp", begin + "262 | " + upper, EPROTONOSUPPORT});
      calls.push_back({"tcp", begin + "6 | " + upper, 0});
    }
  check_calls(calls);
}

TEST_CASE("in a sandbox nothing types into a terminal and no randomisation is turned off") {
  check_calls({
      {"TIOCSTI", number(SYS_ioctl) + ", 0, 0x5412, 0", EPERM},
      {"TIOCSTI_high", number(SYS_ioctl) + ", 0, 0x5412 | 1 << 32, 0", EPERM},
      {"TIOCLINUX", number(SYS_ioctl) + ", 0, 0x541c, 0", EPERM},
      {"TIOCSETD", number(SYS_ioctl) + ", 0, 0x5423, 0", EPERM},
      {"TIOCSETD_high", number(SYS_ioctl) + ", 0, 0x5423 | 1 << 32, 0", EPERM},
      {"TCGETS", number(SYS_ioctl) + ", 0, 0x5401, 0", ENOTTY},
      {"query", number(SYS_personality) + ", 0xffffffff", 0},
      {"default", number(SYS_personality) + ", 0", 0},
      {"no_randomize", number(SYS_personality) + ", 0x40000", EPERM},
      {"nearly_query", number(SYS_personality) + ", 0xfffffffe", EPERM},
      {"top_bit", number(SYS_personality) + ", 0x80000000", EPERM},
      {"read_implies_exec", number(SYS_personality) + ", 0x400000", EPERM},
  });
}

#ifdef __x86_64__
TEST_CASE("in a sandbox the x32 numbers do not exist") {
  check_calls({{"getpid", number(SYS_getpid), 0},
               {"x32_getpid", number(SYS_getpid | 0x40000000), ENOSYS},
               {"x32_mount", number(SYS_mount | 0x40000000), ENOSYS}});
}
#endif

TEST_CASE("ordinary programs work under the filter") {
  const auto ran = run_python(R"(
import concurrent.futures, multiprocessing, os, socket, subprocess, threading, time
def double(x): return 2 * x
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(double, range(10))))
context = multiprocessing.get_context('fork')
with context.Pool(2) as pool: print(pool.map(double, [1, 2]))
lock = multiprocessing.Lock()
with lock: print('semaphore')
print(subprocess.run(['/bin/echo', 'subprocess'], capture_output=True, text=True).stdout.strip())
print(subprocess.run('echo shell', shell=True, capture_output=True, text=True).stdout.strip())
a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))
master, slave = os.openpty(); print(os.isatty(slave))
print(os.sched_getaffinity(0) != set(), time.time() > 0)
)");
  CHECK(ran.err == "");
  CHECK(ran.out == "90\n[2, 4]\nsemaphore\nsubprocess\nshell\nb'x'\nTrue\nTrue True\n");
  CHECK(ran.status == 0);
}

TEST_CASE("node works under the filter") {
  if (access("/usr/bin/node", X_OK) != 0) {
    MESSAGE("skipped: /usr/bin/node");
    return;
  }
  const auto ran = run_in_sandbox(
      {"/usr/bin/node", "-e",
       "const {Worker} = require('worker_threads'); const {execSync} = require('child_process');"
       "new Worker('require(\"worker_threads\").parentPort.postMessage(1)', {eval: true})"
       ".on('message', m => { console.log(m, execSync('echo child').toString().trim());"
       "require('fs').writeFileSync('/sandbox/a', 'b'); require('fs').promises.readFile('/sandbox/a').then(d => "
       "console.log(d.toString())); })"});
  CHECK(ran.err == "");
  CHECK(ran.out == "1 child\nb\n");
}
