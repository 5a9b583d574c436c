// What a user of JavaScript relies on.
#include "table.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

TEST_CASE("javascript: CommonJS") {
  check_cases(
      "javascript",
      {
          {"the main module", "console.log(require.main === module, __dirname, __filename, this === module.exports)",
           "true /tmp/sandbox /tmp/sandbox/main.js true\n"},
          {"modules of node",
           "const { sep } = require('node:path');\nconsole.log(sep, typeof require('fs').readFileSync)",
           "/ function\n"},
          {"files of its own",
           "require('fs').writeFileSync('mine.js', 'exports.value = 7');\nconsole.log(require('./mine').value)", "7\n"},
          {"JSON", "require('fs').writeFileSync('a.json', '[1]');\nconsole.log(require('./a.json'))", "[ 1 ]\n"},
          {"dynamic import", "import('node:os').then((os) => console.log(typeof os.cpus))", "function\n"},
          {"sloppy mode", "undeclared = 3;\nconsole.log(undeclared, delete globalThis.undeclared)", "3 true\n"},
          {"a hashbang", "#!/usr/bin/env node\nconsole.log('hash')", "hash\n"},
          {"exit code", "process.exit(9)", "", 9},
          {"exit code set", "process.exitCode = 3;\nconsole.log('goes on')", "goes on\n", 3},
          {"the line of an error", "\n\nthrow new TypeError('why')", "", 1, "main.js:3\n"},
          {"the line of a syntax error", "const a = 1;\nconst b = ;", "", 1, "main.js:2\n"},
          {"a rejection that nobody handles", "\nPromise.reject(new Error('lost'))", "", 1, "main.js:2:16"},
          {"a rejection without an error", "Promise.reject(5)", "", 1, "ERR_UNHANDLED_REJECTION"},
          {"a rejection that is handled late",
           "process.on('unhandledRejection', (e) => console.log('seen', e));\nPromise.reject(5)", "seen 5\n"},
          {"timers and the order of things",
           "setTimeout(() => console.log(4), 1);\nsetImmediate(() => 0);\nPromise.resolve().then(() => "
           "console.log(3));\n"
           "process.nextTick(() => console.log(2));\nconsole.log(1)",
           "1\n2\n3\n4\n"},
          {"worker threads",
           "const { Worker, isMainThread, parentPort } = require('worker_threads');\n"
           "if (isMainThread) new Worker(__filename).on('message', (m) => console.log('got', m));\n"
           "else parentPort.postMessage(42);",
           "got 42\n"},
          {"the same node by name",
           "console.log(require('child_process').execSync('node -p process.execPath').toString()"
           ".trim() === process.execPath)",
           "true\n"},
          {"a child that talks",
           "const { fork } = require('child_process');\nif (process.argv[2]) process.send('hi');\n"
           "else fork(__filename, ['child']).on('message', (m) => console.log(m))",
           "hi\n"},
          {"stdin is at its end", "process.stdin.on('data', () => 0).on('end', () => console.log('end'))", "end\n"},
          {"both streams", "console.log('out');\nconsole.error('err')", "out\n", 0, "err\n"},
          {"text that is not ASCII", "console.log('gr\xc3\xbc\xc3\x9f', '\xf0\x9f\x98\x80'.length)",
           "gr\xc3\xbc\xc3\x9f 2\n"},
          {"intl", "console.log(new Intl.NumberFormat('en-US').format(1234.5))", "1,234.5\n"},
          {"wasm",
           "console.log(WebAssembly.validate(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)), typeof crypto.randomUUID())",
           "true string\n"},
          {"no variables of the server",
           "console.log(Object.keys(process.env).filter((n) => /SANDBOX|BACKEND|NODE|npm/.test(n)))", "[]\n"},
          {"arguments", "console.log(process.argv.length, process.execArgv)", "2 []\n"},
      });
}

TEST_CASE("javascript: ES modules") {
  check_cases(
      "javascript",
      {
          {"import",
           "import { basename } from 'node:path';\nimport fs from 'fs';\nconsole.log(basename('/a/b'), typeof fs)",
           "b object\n"},
          {"top-level await", "const a = await Promise.resolve(5);\nfor await (const b of [1]) console.log(a, b)",
           "5 1\n"},
          {"await and require", "const a = await 5;\nconsole.log(a, typeof require)", "5 undefined\n"},
          {"import.meta", "console.log(import.meta.url)", "file:///tmp/sandbox/main.js\n"},
          {"export", "export const a = 1;\nconsole.log(this)", "undefined\n"},
          {"dynamic import", "const { sep } = await import('node:path');\nconsole.log(sep)", "/\n"},
          {"createRequire",
           "import { createRequire } from 'node:module';\n"
           "console.log(createRequire(import.meta.url)('os').EOL.length)",
           "1\n"},
          {"files of its own",
           "import { writeFileSync } from 'fs';\nwriteFileSync('mine.mjs', 'export default 7');\n"
           "console.log((await import('./mine.mjs')).default)",
           "7\n"},
          {"the line of an error", "import 'fs';\n\nthrow new Error('why')", "", 1, "main.js:3\n"},
          {"the line of a syntax error", "import 'fs';\nconst b = ;", "", 1, "main.js:2\n"},
          {"a name that is not exported", "import { nothing } from 'node:fs';", "", 1, "does not provide an export"},
          {"a module that is not there", "import 'nothing-of-this-name';", "", 1, "ERR_MODULE_NOT_FOUND"},
          {"a rejection", "await 1;\nawait Promise.reject(new Error('lost'))", "", 1, "main.js:2:22"},
          {"exit code", "await 1;\nprocess.exit(4)", "", 4},
          {"nothing is left behind", "import { readdirSync } from 'fs';\nconsole.log(readdirSync('.'))",
           "[ 'main.js' ]\n"},
      });
}

TEST_CASE("javascript: an await that never ends has its own exit code") {
  if (!is_here("javascript")) return;
  CHECK(run_in("javascript", "await new Promise(() => 0)").exit_code == 13);  // newer ones also say so on stderr
}

TEST_CASE("javascript: asked for as modules or CommonJS it is that alone") {
  if (!is_here("javascript")) return;
  CHECK(run_in("mjs", "console.log(import.meta.url, typeof require)").stdout_bytes ==
        "file:///tmp/sandbox/main.mjs undefined\n");
  CHECK(run_in("cjs", "console.log(__filename)").stdout_bytes == "/tmp/sandbox/main.cjs\n");
  CHECK(run_in("cjs", "await 5").exit_code == 1);
}

TEST_CASE("javascript: TypeScript runs where node takes it, and where not, what is needed is said") {
  if (!is_here("javascript")) return;
  const auto typed = run_in(" TypeScript ",
                            "interface Person { name: string }\nconst ada: Person = { name: 'Ada' };\n"
                            "console.log(ada.name as string);");
  CHECK(typed.language == "javascript");
  if (typed.exit_code != 0) {
    CHECK(contains(typed.stderr_bytes, "TypeScript needs Node.js 22.18 or newer"));
    CHECK(contains(typed.stderr_bytes, engine().report(*engine().languages().find("javascript")).version));
    CHECK(typed.stdout_bytes == "");
    return;
  }
  CHECK(typed.stdout_bytes == "Ada\n");
  CHECK(typed.stderr_bytes == "");
  const auto failing = run_in("ts", "const n: number = await Promise.resolve(1);\n\nthrow new Error('why' + n)");
  CHECK(failing.exit_code == 1);
  CHECK(contains(failing.stderr_bytes, "main.ts:3"));
  CHECK(run_in("ts", "enum A { X, Y }\nconsole.log(A.Y)").stdout_bytes == "1\n");
}

TEST_CASE("javascript: of big output the beginning and the end are kept") {
  if (!is_here("javascript")) return;
  const auto result = run_in("javascript", "console.log('first'); console.log('x'.repeat(50e6)); console.log('last')");
  CHECK(result.exit_code == 0);
  CHECK(result.truncated);
  CHECK(result.stdout_bytes.starts_with("first\n"));
  CHECK(result.stdout_bytes.ends_with("last\n"));
}

TEST_CASE("javascript: output is kept when the time is up") {
  if (!is_here("javascript")) return;
  const auto result = run_in("javascript", "process.stdout.write('before');\nfor (;;);", 2s);
  CHECK(result.stdout_bytes == "before");
  CHECK(result.reason == Reason::kTimeout);
  CHECK(result.exit_code == 124);
}

TEST_CASE("javascript: all examples run") { check_examples("javascript"); }
