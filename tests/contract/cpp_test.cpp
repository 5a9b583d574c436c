// C++ as bare g++ -std=c++20 compiles it and the program ends.
#include <algorithm>
#include <string>
#include <vector>

#include "table.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

namespace {

ExecutionResult cpp(const std::string& code, std::chrono::milliseconds timeout = 60s) {
  auto result = run_in("cpp", code, timeout);
  CHECK_MESSAGE(result.reason != Reason::kBackendUnavailable, result.stderr_bytes);
  return result;
}

/// A main that does just this.
std::string program(const std::string& body, const std::string& includes = "#include <iostream>\n") {
  return includes + "int main() {\n" + body + "\n}\n";
}

}  // namespace

TEST_CASE("cpp: programs end as they say") {
  const std::string many_headers = "#include <algorithm>\n#include <iostream>\n#include <map>\n#include <vector>\n";
  check_cases(
      "cpp",
      {
          {"output and exit code", program("std::cout << \"hi\\n\"; return 5;"), "hi\n", 5},
          {"no header at all", "int main() { return 3; }", "", 3},
          {"C headers", program("printf(\"%d\\n\", 4);", "#include <stdio.h>\n"), "4\n"},
          {"everything", program("std::vector<int> v{1, 2}; std::cout << v.size();", "#include <bits/stdc++.h>\n"),
           "2"},
          {"many headers in any order",
           program("std::map<int, std::vector<int>> m; std::cout << m[1].size();", many_headers), "0"},
          {"comments before the headers", "// one\n/* two\n three */\n" + program("std::cout << __LINE__;"), "6"},
          {"lines of Windows", "#include <iostream>\r\nint main() {\r\n  std::cout << __LINE__;\r\n}\r\n", "3"},
          {"macros before the headers",
           "#define NDEBUG\n#include <cassert>\n" + program("assert(false); std::cout << 1;"), "1"},
          {"a header in a comment is none",
           "/*\n#include <bits/stdc++.h>\n*/\n#include <cstdio>\nstruct vector {};\nusing namespace std;\n"
           "int main() { vector mine; (void)mine; puts(\"mine\"); }",
           "mine\n"},
          {"names of headers that it does not include are free",
           "#include <iostream>\nusing namespace std;\nstruct stack {};\nint main() { stack mine; (void)mine; }", ""},
          {"the file's own name", program("std::cout << __FILE__;"), "main.cpp"},
          {"end of input", program("int c = std::cin.get(); std::cout << c;"), "-1"},
          {"threads",
           program("int sum = 0; std::mutex m; std::vector<std::jthread> all;\n"
                   "for (int i = 1; i <= 8; ++i) all.emplace_back([&, i] { std::lock_guard g(m); sum += i; });\n"
                   "all.clear(); std::cout << sum;",
                   "#include <iostream>\n#include <mutex>\n#include <thread>\n#include <vector>\n"),
           "36"},
          {"concepts and ranges",
           "#include <concepts>\n#include <iostream>\n#include <ranges>\n"
           "template <std::integral T> T twice(T x) { return 2 * x; }\n"
           "int main() { for (int i : std::views::iota(1, 4) | std::views::transform(twice<int>)) std::cout << i; }",
           "246"},
          {"coroutines",
           "#include <coroutine>\n#include <cstdio>\n"
           "struct Task {\n"
           "  struct promise_type {\n"
           "    Task get_return_object() { return {}; }\n"
           "    std::suspend_never initial_suspend() { return {}; }\n"
           "    std::suspend_never final_suspend() noexcept { return {}; }\n"
           "    void return_void() {}\n    void unhandled_exception() {}\n"
           "  };\n};\n"
           "Task task() { puts(\"in\"); co_return; }\nint main() { task(); }",
           "in\n"},
          {"format, where the library has it",
           "#include <iostream>\n#include <version>\n#ifdef __cpp_lib_format\n#include <format>\n"
           "int main() { std::cout << std::format(\"{}\", 42); }\n#else\nint main() { std::cout << 42; }\n#endif\n",
           "42"},
          {"exceptions", program("try { throw 7; } catch (int i) { std::cout << i; }"), "7"},
      });
}

TEST_CASE("cpp: a crash tells its signal") {
  if (!is_here("cpp")) return;
  struct Row {
    const char* what;
    std::string code;
    int signal;
  };
  const std::vector<Row> table = {
      {"a null pointer written through", program("int* p = nullptr; *p = 1;"), 11},
      {"a null pointer read through, the result unused", program("int* p = nullptr; int x = *p; (void)x;"), 11},
      {"endless recursion",
       "int f(int n) { volatile int a[100]; a[n % 100] = n; return f(n + 1) + a[n % 100]; }\nint main() { return f(0); "
       "}",
       11},
      {"abort", program("abort();", "#include <cstdlib>\n"), 6},
      {"an exception that nobody catches", program("throw 1;"), 6},
      {"freed twice", program("int* p = new int; delete p; delete p;"), 6},
      {"a division by zero, the result unused",
       "int zero(int n) { return n - 1; }\nint main(int n, char**) { int x = 42 / zero(n); (void)x; }", 8},
  };
  for (const auto& row : table) {
    CAPTURE(row.what);
    const auto result = cpp(row.code);
    CAPTURE(result.stderr_bytes);
    CHECK(result.reason == Reason::kSignal);
    CHECK(result.exit_code == 128 + row.signal);
  }
}

TEST_CASE("cpp: what stood on stdout before a crash is kept") {
  if (!is_here("cpp")) return;
  const auto result = cpp(program("std::cout << \"before\" << std::endl; std::terminate();"));
  CHECK(result.stdout_bytes == "before\n");
  CHECK(result.exit_code == 134);
}

TEST_CASE("cpp: errors of the compiler point at the user's lines, and nothing is run") {
  if (!is_here("cpp")) return;
  struct Row {
    const char* what;
    std::string code;
    const char* message;
  };
  const std::vector<Row> table = {
      {"a syntax error", "#include <iostream>\n\nint main() {\n  std::cout << 1\n}\n", "main.cpp:4:"},
      {"an unknown name behind headers", "#include <iostream>\n#include <vector>\nint main() {\n  nothing();\n}\n",
       "main.cpp:4:3: error"},
      {"a header that it does not include", "#include <iostream>\nint main() { std::vector<int> v; }\n", "main.cpp:2:"},
      {"a header that it includes in a comment only",
       "// \\\n#include <map>\n#include <iostream>\nint main() { std::map<int, int> m; }\n", "main.cpp:4:"},
      {"#error", "#error \"not here\"\n", "main.cpp:1:"},
      {"no main", "#include <iostream>\nint f() { return 1; }\n", "main"},
      {"a function that is nowhere", "int f();\nint main() { return f(); }\n", "f()"},
      {"a header of no package here", "#include <no/such/header.h>\nint main() {}\n", "'libraries'"},
      {"nothing", "", "main"},
  };
  for (const auto& row : table) {
    CAPTURE(row.what);
    const auto result = cpp(row.code);
    CAPTURE(result.stderr_bytes);
    CHECK(result.reason == Reason::kCompileFailed);
    CHECK(contains(result.stderr_bytes, row.message));
    CHECK_FALSE(contains(result.stderr_bytes, "<command-line>"));
    CHECK(result.stdout_bytes.empty());
    CHECK(result.exit_code != 0);
  }
}

TEST_CASE("cpp: warnings come with the program's own words") {
  if (!is_here("cpp")) return;
  const auto result = cpp("#include <iostream>\n#warning careful\nint main() { std::cerr << \"ran\"; }\n");
  CHECK(result.exit_code == 0);
  CHECK_FALSE(result.reason);
  CHECK(contains(result.stderr_bytes, "main.cpp:2:2: warning"));
  CHECK(result.stderr_bytes.ends_with("ran"));
}

TEST_CASE("cpp: a flood of errors is bounded") {
  if (!is_here("cpp")) return;
  std::string code = "#include <algorithm>\n#include <iostream>\n#include <vector>\nstruct S {};\nint main() {\n";
  for (int i = 0; i < 200; ++i)
    code += "  { std::vector<S> v(3); std::sort(v.begin(), v.end()); undefined_" + std::to_string(i) + "(); }\n";
  const auto result = cpp(code + "}\n");
  CHECK(result.reason == Reason::kCompileFailed);
  CHECK(contains(result.stderr_bytes, "main.cpp:6:"));
  const auto errors = std::count(result.stderr_bytes.begin(), result.stderr_bytes.end(), '\n');
  CHECK(errors > 20);
  CHECK(result.stderr_bytes.size() < 200'000);
}

TEST_CASE("cpp: a compiler that never ends is stopped") {
  if (!is_here("cpp")) return;
  EngineConfig config;
  config.compile_timeout = 5s;
  ExecutionRequest request;
  request.language = "cpp";
  request.code = "#include </dev/random>\nint main() {}\n";
  const auto endless = engine_with(std::move(config))->run(request, {});
  CHECK(endless.reason);
  CHECK(endless.exit_code != 0);
  CHECK(endless.stdout_bytes.empty());

  const auto deep = cpp("template <int N> struct S { S<N + 1> s; };\nint main() { S<0> s; }\n");
  CHECK(deep.reason == Reason::kCompileFailed);
}

TEST_CASE("cpp: memory and time have their limits") {
  if (!is_here("cpp")) return;
  const auto greedy = cpp(program("std::vector<std::string> v;\nwhile (true) v.push_back(std::string(1 << 20, 'x'));",
                                  "#include <string>\n#include <vector>\n"));
  CHECK(greedy.reason == Reason::kMemoryLimit);
  CHECK(greedy.exit_code != 0);  // killed by a control group, else by its own runtime
  const auto endless = cpp(program("std::cout << \"up\" << std::endl; for (volatile int i = 0;; i = 1 - i) {}"), 2s);
  CHECK(endless.reason == Reason::kTimeout);
  CHECK(endless.stdout_bytes == "up\n");
}

TEST_CASE("cpp: options and files are not smuggled in by a name") {
  if (!is_here("cpp")) return;
  for (const char* name : {"-o/tmp/x", "libfmt-dev-", "libfmt-dev/sid", "./libfmt.deb", "libfmt-dev:i386", "^libfmt",
                           "a b", "libfmt-dev=", "LIBFMT", ""}) {
    CAPTURE(name);
    ExecutionRequest request;
    request.language = "cpp";
    request.code = "int main() {}";
    request.libraries = {name};
    CHECK(engine().run(request, {}).reason == Reason::kInvalidArgument);
  }
}

TEST_CASE("cpp: the examples run") { check_examples("cpp"); }
