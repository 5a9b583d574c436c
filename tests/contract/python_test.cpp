// What a user of Python relies on.
#include "table.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

TEST_CASE("python: programs end as they do under the bare interpreter") {
  check_cases(
      "python",
      {
          {"__future__ on the first line",
           "from __future__ import annotations\ndef f(x: nonsense): pass\nprint(f.__annotations__)",
           "{'x': 'nonsense'}\n"},
          {"the line of an error", "x = 1\n\n1 / 0", "", 1, "main.py\", line 3, in <module>"},
          {"the line of a syntax error", "x = 1\ny = (2", "", 1, "main.py\", line 2"},
          {"the name and the names", "print(__name__, sorted(globals()))",
           "__main__ ['__annotations__', '__builtins__', '__cached__', '__doc__', '__file__', '__loader__', "
           "'__name__', '__package__', '__spec__']\n"},
          {"exit code", "raise SystemExit(3)", "", 3},
          {"exit without a code", "import sys\nprint('x')\nsys.exit()", "x\n"},
          {"exit with None", "raise SystemExit(None)", ""},
          {"exit with a text", "raise SystemExit('why')", "", 1, "why\n"},
          {"exit with a negative code", "raise SystemExit(-1)", "", 255},
          {"exit with True", "raise SystemExit(True)", "", 1},
          {"os._exit", "import os\nprint('kept')\nos._exit(4)", "kept\n", 4},
          {"quit", "quit(5)", "", 5},
          {"atexit after an error", "import atexit\natexit.register(print, 'last')\nraise ValueError('first')",
           "last\n", 1, "ValueError: first"},
          {"a thread goes on after the main program",
           "import threading, time\ndef work():\n    time.sleep(0.1)\n    print('worked')\n"
           "threading.Thread(target=work).start()\nprint('main')",
           "main\nworked\n"},
          {"an error in a thread", "import threading\nthreading.Thread(target=lambda: 1 / 0).start()", "", 0,
           "ZeroDivisionError"},
          {"the same python by name",
           "import subprocess, sys\nprint(subprocess.run(['python3', '-c', 'import sys; print(sys.prefix)'],\n"
           "  capture_output=True, text=True).stdout.strip() == sys.prefix)",
           "True\n"},
          {"multiprocessing",
           "import multiprocessing\ndef f(x): return x * x\nif __name__ == '__main__':\n"
           "    for way in ('fork', 'spawn', 'forkserver'):\n"
           "        with multiprocessing.get_context(way).Pool(2) as pool: print(pool.map(f, range(3)))",
           "[0, 1, 4]\n[0, 1, 4]\n[0, 1, 4]\n"},
          {"a process pool",
           "from concurrent.futures import ProcessPoolExecutor\nif __name__ == '__main__':\n"
           "    with ProcessPoolExecutor(2) as pool: print(list(pool.map(abs, [-1, -2])))",
           "[1, 2]\n"},
          {"asyncio",
           "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\nprint(asyncio.run(f()))", "5\n"},
          {"text that is not ASCII", "print('gr\xc3\xbc\xc3\x9f' 'e \xe4\xb8\x96')",
           "gr\xc3\xbc\xc3\x9f"
           "e \xe4\xb8\x96\n"},
          {"encodings",
           "import sys, locale\nprint(sys.stdout.encoding, sys.getfilesystemencoding(), open('x', 'w').encoding)",
           "utf-8 utf-8 UTF-8\n"},
          {"another source encoding", "# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))", "'\\xe9'\n"},
          {"a byte order mark", "\xef\xbb\xbfprint('marked')", "marked\n"},
          {"lines of Windows", "if True:\r\n    print('crlf')\r\n", "crlf\n"},
          {"sqlite, ssl and the like are there",
           "import sqlite3, ssl, ctypes, lzma\nprint(sqlite3.connect(':memory:')"
           ".execute('select 6 * 7').fetchone()[0])",
           "42\n"},
          {"files of its own", "open('a.txt', 'w').write('x')\nimport os\nprint(sorted(os.listdir()))",
           "['a.txt', 'main.py']\n"},
          {"modules of its own", "open('mine.py', 'w').write('value = 7')\nimport mine\nprint(mine.value)", "7\n"},
          {"a temporary file", "import tempfile\nprint(tempfile.NamedTemporaryFile().name.startswith('/tmp/'))",
           "True\n"},
          {"no variables of the server",
           "import os\nprint([n for n in os.environ if 'SANDBOX' in n or n in ('BACKEND', 'PYTHONPATH', "
           "'CONTRACT_BACKEND')])",
           "[]\n"},
      });
}

TEST_CASE("python: bytes that are no text pass") {
  const auto result = run_in("python", "import sys\nsys.stdout.buffer.write(bytes(range(256)))");
  CHECK(result.stdout_bytes.size() == 256);
  CHECK(result.stdout_bytes[255] == '\xff');
}

TEST_CASE("python: both streams are unbuffered, whatever ends the program") {
  const auto result = run_in("python",
                             "import os, signal, sys\nprint('out', end='')\nprint('err', end='', file=sys.stderr)\n"
                             "os.kill(os.getpid(), signal.SIGKILL)");
  CHECK(result.stdout_bytes == "out");
  CHECK(result.stderr_bytes == "err");
  CHECK(result.exit_code == 137);
}

TEST_CASE("python: of big output the beginning and the end are kept") {
  const auto result = run_in("python", "print('first')\nprint('x' * 50_000_000)\nprint('last')");
  CHECK(result.exit_code == 0);
  CHECK(result.truncated);
  CHECK(result.stdout_bytes.starts_with("first\n"));
  CHECK(result.stdout_bytes.ends_with("last\n"));
  CHECK(result.stdout_bytes.size() < 3 << 20);
}

TEST_CASE("python: all examples run") { check_examples("python"); }

TEST_CASE("python: each library that is told can be imported") {
  if (!is_here("python")) return;
  const auto report = engine().report(*engine().languages().find("python"));
  const auto result = run_in("python",
                             "from importlib import metadata\n"
                             "for one in metadata.distributions(): print(one.metadata['Name'], one.version)");
  for (const auto& library : report.libraries) {
    CAPTURE(library);
    CHECK(contains("\n" + result.stdout_bytes, "\n" + library + "\n"));
  }
}
