#include <doctest/doctest.h>

#include "in_bwrap.h"

using namespace llm_sandbox;

namespace {

InBwrap python() { return {*LanguageCatalog::built_in().find("python"), "/usr/bin/python3"}; }

bool can_run(const InBwrap& interpreter) {
  const std::string missing = interpreter.missing();
  if (!missing.empty()) MESSAGE("skipped: " << missing);
  return missing.empty();
}

struct Program {
  std::string what;
  std::string code;
  int exit_code;
};

const Program kPrograms[] = {
    {"arguments and paths", "import sys\nprint(sys.argv, sys.path, sys.flags, sys.executable, sys.orig_argv, __file__)",
     0},
    {"names", "print(sorted(globals()), __name__, __doc__, sorted(vars(__builtins__)), __spec__)", 0},
    {"modules", "import sys\nprint(sorted(sys.modules), sorted(sys.path_importer_cache), len(sys.path_hooks))", 0},
    {"environment",
     "import os, site, sys\nprint(dict(os.environ), os.getcwd(), site.ENABLE_USER_SITE, sys.dont_write_bytecode)", 0},
    {"from __future__", "from __future__ import annotations\ndef f(x: nonsense): pass\nprint(f.__annotations__)", 0},
    {"traceback", "def f():\n    return 1 / 0\n\nf()", 1},
    {"chained traceback", "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e", 1},
    {"missing module", "import no_such_module", 1},
    {"missing submodule", "import os.nothing", 1},
    {"syntax error", "print('never')\nx = = 2", 1},
    {"module with an error", "open('m.py', 'w').write('import nope_inside')\nimport m", 1},
    {"exit code", "import sys\nsys.exit(7)", 7},
    {"SystemExit with a text", "raise SystemExit('a message')", 1},
    {"os._exit", "import os\nprint('x')\nos._exit(4)", 4},
    {"KeyboardInterrupt", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(5)", 130},
    {"order of atexit",
     "import atexit\natexit.register(print, 1)\natexit.register(print, 2)\nraise RuntimeError('then those')", 1},
    {"own excepthook",
     "import sys\nprint(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)", 0},
    {"non-ASCII", "print('grüße, 世界 \\U0001f600')", 0},
    {"stdin at its end", "try:\n    input()\nexcept EOFError as e:\n    print(repr(e))", 0},
    {"recursion", "def f(): f()\ntry:\n    f()\nexcept RecursionError as e:\n    print(e)", 0},
    {"sys.executable in a child",
     "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys, os; print(sys.path, "
     "sorted(os.environ), len(sys.meta_path))'], capture_output=True, text=True).stdout)",
     0},
    {"fork",
     "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    raise SystemExit(3)\n"
     "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
     0},
    {"multiprocessing by fork",
     "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
     "    with m.get_context('fork').Pool(2) as p: print(p.map(f, range(5)))",
     0},
    {"multiprocessing by spawn",
     "import multiprocessing as m, sys\ndef f(x): return x, sys.path, sorted(n for n in sys.modules if 'sandbox' in "
     "n)\n"
     "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, range(2)))",
     0},
    {"an own sitecustomize",
     "open('sitecustomize.py', 'w').write('print(1)')\nimport sys\nprint('sitecustomize' in sys.modules)", 0},
    {"reloading the site module", "import importlib, site\nimportlib.reload(site)\nprint('reloaded')", 0},
    {"pickle of an own class", "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))", 0},
    {"threads", "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\nt.start()\nt.join()", 0},
    {"an unawaited coroutine", "async def f(): pass\nf()", 0},
};

}  // namespace

TEST_CASE("a plain program does under the runner exactly what it does under the bare interpreter") {
  const InBwrap interpreter = python();
  if (!can_run(interpreter)) return;
  for (const auto& program : kPrograms) {
    CAPTURE(program.what);
    const Ran bare = interpreter.bare(program.code);
    const Ran with_runner = interpreter.with_runner(program.code);
    CHECK(with_runner.exit_code == program.exit_code);
    CHECK(with_runner.exit_code == bare.exit_code);
    CHECK(with_runner.out == bare.out);
    CHECK(with_runner.err == bare.err);
    CHECK(with_runner.workspace == bare.workspace);
    CHECK(with_runner.artifacts.empty());
    CHECK(with_runner.notes.empty());
  }
}

TEST_CASE("an import that fails inside matplotlib looks as it does without the runner") {
  const InBwrap interpreter = python();
  if (!can_run(interpreter)) return;
  const std::string fake_matplotlib =
      "import os\nos.makedirs('matplotlib')\nopen('matplotlib/__init__.py', 'w').close()\n"
      "open('matplotlib/pyplot.py', 'w').write('def f():\\n    raise RuntimeError(1)\\n\\nf()')\nimport "
      "matplotlib.pyplot";
  const Ran bare = interpreter.bare(fake_matplotlib);
  CHECK(interpreter.with_runner(fake_matplotlib).err == bare.err);
  CHECK(bare.err.find("RuntimeError: 1") != std::string::npos);
}

TEST_CASE("the examples for Python run") {
  const InBwrap interpreter = python();
  if (!can_run(interpreter)) return;
  const bool can_draw = std::filesystem::exists("/usr/lib/python3/dist-packages/matplotlib");
  const auto catalog = LanguageCatalog::built_in();
  for (const auto& example : catalog.find("python")->examples) {
    CAPTURE(example.title);
    const bool draws = example.code.find("matplotlib") != std::string::npos;
    if (draws && !can_draw) {
      MESSAGE("skipped: python3-matplotlib");
      continue;
    }
    const Ran ran = interpreter.with_runner(example.code);
    CHECK(ran.exit_code == 0);
    CHECK(ran.err == "");
    CHECK(ran.out.empty() == draws);
    CHECK(ran.artifacts.size() == (draws ? 1 : 0));
  }
}

TEST_CASE("running out of memory is recognised by its mark") {
  const InBwrap interpreter = python();
  if (!can_run(interpreter)) return;
  const Ran ran = interpreter.with_runner(
      "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2 ** 28, 2 ** 28))\nx = bytearray(2 ** 30)");
  CHECK(ran.exit_code == 1);
  const LanguageCatalog languages = LanguageCatalog::built_in();
  CHECK(says_out_of_memory(*languages.find("python"), ran.err));
}

TEST_CASE("a text that speaks of memory is not taken for a runtime that has none") {
  const LanguageCatalog languages = LanguageCatalog::built_in();
  const std::pair<const char*, const char*> said[] = {
      {"python", "skipping row: MemoryError('x')\n2 of 9 checks failed\n"},
      {"python", "Traceback (most recent call last):\nValueError: OutOfMemoryError is not MemoryError\n"},
      {"javascript", "JavaScript heap out of memory\n"},
      {"cpp", "std::bad_alloc handled\n"},
      {"go", "2026/01/01 runtime: out of memory: simulated\n"},
      {"ruby", "main.rb:1:in `<main>': NoMemoryError / failed to allocate memory (RuntimeError)\n"},
      {"java", "caught java.lang.OutOfMemoryError: Java heap space\n"}};
  for (const auto& [name, text] : said) {
    CAPTURE(text);
    CHECK_FALSE(says_out_of_memory(*languages.find(name), text));
  }
}
