#include <doctest/doctest.h>

#include "in_bwrap.h"

using namespace llm_sandbox;

namespace {

InBwrap node() { return {*LanguageCatalog::built_in().find("javascript"), "/usr/bin/node"}; }

bool can_run() {
  const std::string missing = node().missing();
  if (!missing.empty()) MESSAGE("skipped: " << missing);
  return missing.empty();
}

/// Whether this node tells ES modules by itself, so that it can be compared with.
bool detects_modules() { return node().bare("export {}; console.log(1)").out == "1\n"; }

struct Program {
  std::string what;
  std::string code;
  int exit_code;
};

const Program kCommonJs[] = {
    {"main module",
     "console.log(require.main === module, __filename, __dirname, module.id, module.children, this === exports,\n"
     "  process.argv, process.execArgv, Object.keys(require.cache), process.mainModule === module)",
     0},
    {"order of callbacks",
     "setImmediate(() => console.log('immediate'));\nPromise.resolve().then(() => console.log('promise'));\n"
     "process.nextTick(() => console.log('tick'));\nqueueMicrotask(() => console.log('micro'));",
     0},
    {"environment", "console.log(process.env, Object.keys(globalThis), process.cwd())", 0},
    {"exit code", "process.exitCode = 3;\nprocess.on('exit', () => console.log('bye'));", 3},
    {"process.exit", "process.exit(9)", 9},
    {"missing module", "try { require('nothing') } catch (e) { console.log(e.code) }", 0},
    {"child process",
     "console.log(require('child_process').execFileSync(process.execPath, ['-p', '6 * 7']).toString())", 0},
    {"fork",
     "if (process.argv[2]) process.send(process.execArgv); else\n"
     "require('child_process').fork(__filename, ['x']).on('message', (m) => console.log(m));",
     0},
    {"worker",
     "const { Worker, isMainThread } = require('worker_threads');\n"
     "if (isMainThread) new Worker(__filename); else console.log('worker');",
     0},
    {"stderr", "console.error('to stderr')", 0},
};

const Program kModules[] = {
    {"imports",
     "import fs from 'node:fs';\nconsole.log(import.meta.url, this, process.argv, process.mainModule);\n"
     "console.log(fs.readdirSync('.'));",
     0},
    {"top-level await", "const a = await Promise.resolve(5);\nfor await (const x of [1, 2]) console.log(x, a);", 0},
    {"await and import.meta", "const a = await 1;\nconsole.log(a, import.meta.url);", 0},
    {"a hashbang", "#!/usr/bin/env node\nimport os from 'os';\nconsole.log(typeof os.cpus);", 0},
    {"dynamic import", "const path = await import('node:path');\nconsole.log(path.sep);", 0},
    {"export only", "export const x = 1;\nconsole.log(typeof require);", 0},
};

}  // namespace

TEST_CASE("a CommonJS program does under the runner what it does under node alone") {
  if (!can_run()) return;
  for (const auto& program : kCommonJs) {
    CAPTURE(program.what);
    const Ran bare = node().bare(program.code);
    const Ran with_runner = node().with_runner(program.code);
    CHECK(with_runner.exit_code == program.exit_code);
    CHECK(with_runner.exit_code == bare.exit_code);
    CHECK(with_runner.out == bare.out);
    CHECK(with_runner.err == bare.err);
  }
}

TEST_CASE("ES modules and top-level await work, silently and leaving nothing behind") {
  if (!can_run()) return;
  const bool comparable = detects_modules();
  for (const auto& program : kModules) {
    CAPTURE(program.what);
    const Ran ran = node().with_runner(program.code);
    CHECK(ran.exit_code == program.exit_code);
    CHECK(ran.err == "");
    CHECK(ran.workspace == std::vector<std::string>{"main.js"});
    if (comparable) CHECK(ran.out == node().bare(program.code).out);
  }
}

TEST_CASE("an error names the user's line and nothing of the runner") {
  if (!can_run()) return;
  const std::pair<std::string, std::string> programs[] = {
      {"\nfunction f() { throw new Error('boom'); }\nf();", "/sandbox/main.js:2"},
      {"import 'fs';\n\nthrow new Error('boom');", "/sandbox/main.js:3"},
      {"const a = 1;\nconst b = ;", "/sandbox/main.js:2"},
      {"import fs from 'fs';\nconst b = ;", "/sandbox/main.js:2"},
      {"\n\nPromise.reject(new Error('boom'));", "/sandbox/main.js:3"},
      {"await 1;\nawait Promise.reject(new Error('boom'));", "/sandbox/main.js:2"}};
  for (const auto& program : programs) {
    CAPTURE(program.first);
    const Ran ran = node().with_runner(program.first);
    CHECK(ran.exit_code == 1);
    CHECK(ran.err.find(program.second) != std::string::npos);
    CHECK(ran.err.find("run.cjs") == std::string::npos);
    CHECK(ran.err.find("Warning") == std::string::npos);
  }
}

TEST_CASE("the examples for JavaScript run") {
  if (!can_run()) return;
  const auto catalog = LanguageCatalog::built_in();
  for (const auto& example : catalog.find("javascript")->examples) {
    CAPTURE(example.title);
    const Ran ran = node().with_runner(example.code);
    CHECK(ran.exit_code == 0);
    CHECK(ran.err == "");
    CHECK(ran.out != "");
  }
}

TEST_CASE("a full heap is recognised by its mark") {
  if (!can_run()) return;
  const Ran ran = node().with_runner(
      "const fill = 'const all = []; for (;;) all.push(new Array(1000).fill({}))';\n"
      "const options = ['--max-old-space-size=20', '-e', fill];\n"
      "process.exitCode = require('child_process').spawnSync(process.execPath, options, { stdio: 'inherit' }).status "
      "?? 1;");
  CHECK(ran.exit_code != 0);
  const LanguageCatalog languages = LanguageCatalog::built_in();
  CHECK(says_out_of_memory(*languages.find("javascript"), ran.err));
}
