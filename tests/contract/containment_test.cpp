// What a program must not see or reach.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"
#include "base/unique_fd.h"
#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

TEST_CASE("nothing of the server's environment is inherited") {
  setenv("LLM_SANDBOX_TEST_SECRET", "s3cret", 1);
  const auto result = python(
      "import os\n"
      "print(' '.join(sorted(os.environ)))\n"
      "print(any(b's3cret' in open(f'/proc/{p}/environ', 'rb').read() for p in os.listdir('/proc')\n"
      "          if p.isdigit() and os.access(f'/proc/{p}/environ', os.R_OK)))");
  unsetenv("LLM_SANDBOX_TEST_SECRET");
  CHECK_FALSE(contains(result.stdout_bytes, "LLM_SANDBOX"));
  CHECK(result.stdout_bytes.ends_with("False\n"));
}

TEST_CASE("the host's files are not seen") {
  const std::string marker = unique_marker();
  const std::string host_file = "/tmp/" + marker;
  std::ofstream(host_file) << "secret";
  const auto result = python(
      "import os\n"
      "for path in ['" +
      host_file +
      "', '/root', '/home', '/etc/shadow', '/etc/ssh', '/etc/machine-id', '/var/log', '/run',\n"
      "             '/boot', '/srv', '/sys/fs', '/proc/kcore']:\n"
      "    try:\n"
      "        if os.path.isdir(path) and not os.listdir(path): continue\n"
      "        open(path).read(1)\n"
      "        print('seen', path)\n"
      "    except IsADirectoryError: print('seen', path)\n"
      "    except OSError: pass");
  unlink(host_file.c_str());
  CHECK(result.stdout_bytes == "");
  CHECK(result.exit_code == 0);
}

TEST_CASE("only the workspace and /tmp are writable") {
  const auto result = python(
      "import os\n"
      "for folder in ['/', '/usr', '/usr/lib', '/etc', '/bin', '/dev', '/proc', '/llm-sandbox', "
      "os.path.dirname(os.__file__)]:\n"
      "    try:\n"
      "        open(folder + '/written', 'w').close()\n"
      "        print('written', folder)\n"
      "    except OSError: pass\n"
      "for folder in ['/sandbox', '/tmp', '.', os.path.expanduser('~'), '/dev/shm']:\n"
      "    open(folder + '/written', 'w').close()\n"
      "print(os.path.samefile(os.getcwd(), '/sandbox'))");
  CHECK(result.stdout_bytes == "True\n");
  CHECK(result.stderr_bytes == "");
}

TEST_CASE("the network is off") {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener.get(), 1) == 0);
  REQUIRE(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const auto result = python(
      "import os, socket\n"
      "for target in [('127.0.0.1', " +
      std::to_string(ntohs(address.sin_port)) +
      "), ('10.0.0.1', 80)]:\n"
      "    try:\n"
      "        socket.create_connection(target, timeout=2)\n"
      "        print('connected', target)\n"
      "    except OSError: pass\n"
      "print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev').readlines()[2:]))");
  CHECK(result.stdout_bytes == "['lo']\n");
  CHECK_FALSE(result.network);
}

TEST_CASE("the program has no privilege and can get none") {
  const auto result = python(
      "import ctypes, os\n"
      "status = dict(map(str.strip, line.split(':', 1)) for line in open('/proc/self/status'))\n"
      "print([status[name] for name in ('CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp')])\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000):\n"
      "    print(libc.unshare(flag), end=' ')\n"
      "print(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None), libc.ptrace(16, 1, 0, 0), libc.chroot(b'/tmp'))\n"
      "for name in ('mem', 'environ', 'fd/0', 'root/etc/passwd'):\n"
      "    try:\n"
      "        open('/proc/1/' + name, 'rb').read(1)\n"
      "        print('read', name)\n"
      "    except OSError: pass\n"
      "print(os.getuid() != 0)");
  CHECK(result.stdout_bytes ==
        "['0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '1', '2']\n"
        "-1 -1 -1 -1 -1 -1 -1\n"
        "True\n");
}

TEST_CASE("a program cannot end or stop its agent") {
  const auto result = python(
      "import os, signal\n"
      "for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV, signal.SIGCHLD):\n"
      "    try: os.kill(1, number)\n"
      "    except OSError: pass\n"
      "os.closerange(3, 1000)\n"
      "print('still here')");
  CHECK(result.stdout_bytes == "still here\n");
  CHECK(result.exit_code == 0);
}

TEST_CASE("no descriptor is inherited") {
  CHECK(python("import os\nprint(sorted(os.listdir('/proc/self/fd'), key=int)[:3], len(os.listdir('/proc/self/fd')))")
            .stdout_bytes == "['0', '1', '2'] 4\n");  // the fourth is the listing itself
}

TEST_CASE("calls share nothing") {
  python("for path in ('/sandbox/left', '/tmp/left', '/dev/shm/left'): open(path, 'w').close()");
  CHECK(python("import os\nprint([os.path.exists(p + '/left') for p in ('/sandbox', '/tmp', '/dev/shm')])")
            .stdout_bytes == "[False, False, False]\n");
}
