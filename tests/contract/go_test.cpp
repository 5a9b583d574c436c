// Go as bare go build and the program it makes.
#include <string>
#include <vector>

#include "table.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

namespace {

ExecutionResult go(const std::string& code, std::chrono::milliseconds timeout = 60s) {
  auto result = run_in("go", code, timeout);
  CHECK_MESSAGE(result.reason != Reason::kBackendUnavailable, result.stderr_bytes);
  return result;
}

/// A main that does just this, from line 7 (one import) on.
std::string program(const std::string& body, const std::string& imports = "\"fmt\"") {
  return "package main\n\nimport (\n\t" + imports + "\n)\n\nfunc main() {\n" + body + "\n}\n";
}

bool has_c_compiler() { return run_in("cpp", "int main() {}").reason != Reason::kBackendUnavailable && is_here("cpp"); }

}  // namespace

TEST_CASE("go: programs end as they say") {
  check_cases(
      "go",
      {
          {"output", program("fmt.Println(\"hi\")"), "hi\n"},
          {"exit code", program("os.Exit(5)", "\"os\""), "", 5},
          {"nothing imported", "package main\n\nfunc main() {}\n", ""},
          {"end of input",
           program("line, err := bufio.NewReader(os.Stdin).ReadString('\\n')\nfmt.Printf(\"%q %v\", line, err)",
                   "\"bufio\"\n\t\"fmt\"\n\t\"os\""),
           "\"\" EOF"},
          {"log", program("log.SetFlags(0)\nlog.Fatal(\"bad\")", "\"log\""), "", 1, "bad\n"},
          {"generics",
           "package main\n\nimport \"fmt\"\n\ntype Number interface{ ~int | ~float64 }\n\n"
           "func Sum[T Number](all ...T) (sum T) {\n\tfor _, one := range all {\n\t\tsum += one\n\t}\n\treturn\n}\n\n"
           "func main() { fmt.Print(Sum(1, 2, 3), Sum(0.5, 0.5)) }\n",
           "6 1"},
          {"embed",
           "package main\n\nimport (\n\t_ \"embed\"\n\t\"fmt\"\n)\n\n//go:embed main.go\nvar source string\n\n"
           "func main() { fmt.Print(source[:12]) }\n",
           "package main"},
          {"unsafe",
           program("x := int32(7)\nfmt.Print(*(*int32)(unsafe.Pointer(&x)), unsafe.Sizeof(x))",
                   "\"fmt\"\n\t\"unsafe\""),
           "7 4"},
          {"the large packages",
           program("r := httptest.NewRecorder()\nhttp.NotFound(r, httptest.NewRequest(\"GET\", \"/\", nil))\n"
                   "text, _ := json.Marshal(map[string]int{\"code\": r.Code})\nfmt.Print(string(text))",
                   "\"encoding/json\"\n\t\"fmt\"\n\t\"net/http\"\n\t\"net/http/httptest\""),
           "{\"code\":404}"},
          {"packages that few use",
           program("fmt.Print(suffixarray.New([]byte(\"banana\")).Lookup([]byte(\"nan\"), -1))",
                   "\"fmt\"\n\t\"index/suffixarray\""),
           "[2]"},
          {"a hundred goroutines",
           program(
               "var wait sync.WaitGroup\nvar sum atomic.Int64\nfor i := 1; i <= 100; i++ {\n\twait.Add(1)\n"
               "\tgo func(i int) { defer wait.Done(); sum.Add(int64(i)) }(i)\n}\nwait.Wait()\nfmt.Print(sum.Load())",
               "\"fmt\"\n\t\"sync\"\n\t\"sync/atomic\""),
           "5050"},
          {"nothing of the tools' settings",
           program(
               "for _, name := range []string{\"GOGC\", \"GOMEMLIMIT\", \"GOMAXPROCS\", \"GOCACHE\", \"GOFLAGS\"} {\n"
               "\tif value, set := os.LookupEnv(name); set {\n\t\tfmt.Print(name, \"=\", value)\n\t}\n}",
               "\"fmt\"\n\t\"os\""),
           ""},
      });
}

TEST_CASE("go: C beside it") {
  if (!is_here("go") || !has_c_compiler()) return;
  const auto result =
      go("package main\n\n// #include <math.h>\n// #cgo LDFLAGS: -lm\n// static int twice(int x) { return 2 * x; }\n"
         "import \"C\"\nimport \"fmt\"\n\nfunc main() { fmt.Print(C.twice(21), C.sqrt(16)) }\n");
  CHECK(result.stderr_bytes == "");
  CHECK(result.stdout_bytes == "42 4");
}

TEST_CASE("go: a program that goes wrong tells where") {
  if (!is_here("go")) return;
  struct Row {
    const char* what;
    std::string code;
    std::vector<std::string> parts;
  };
  const std::vector<Row> table = {
      {"a panic", program("panic(\"no\")", "_ \"fmt\""), {"panic: no", "main.go:8"}},
      {"an index out of range",
       program("a := []int{1}\nfmt.Println(a[len(a)+4])"),
       {"index out of range [5]", "main.go:9"}},
      {"a nil map",
       program("var m map[int]int\nm[1] = 2\nfmt.Println(m)"),
       {"assignment to entry in nil map", "main.go:9"}},
      {"a nil pointer", program("var p *int\nfmt.Println(*p)"), {"nil pointer dereference", "main.go:9"}},
      {"a division by zero", program("zero := 0\nfmt.Println(1 / zero)"), {"divide by zero", "main.go:9"}},
      {"a deadlock", program("<-make(chan int)\nfmt.Println()"), {"all goroutines are asleep - deadlock!"}},
  };
  for (const auto& row : table) {
    CAPTURE(row.what);
    const auto result = go(row.code);
    CAPTURE(result.stderr_bytes);
    CHECK_FALSE(result.reason);
    CHECK(result.exit_code == 2);
    for (const auto& part : row.parts) CHECK(contains(result.stderr_bytes, part));
    CHECK_FALSE(contains(result.stderr_bytes, "exit status"));
  }
}

TEST_CASE("go: errors of the compiler point at the user's lines, and nothing is run") {
  if (!is_here("go")) return;
  struct Row {
    const char* what;
    std::string code;
    const char* message;
  };
  const std::vector<Row> table = {
      {"no package", "func main() {}\n", "main.go:1:1: expected 'package'"},
      {"nothing", "", "main.go:1:1: expected 'package'"},
      {"another package", "package tool\n\nfunc main() {}\n", "package main"},
      {"no main", "package main\n\nfunc run() {}\n", "function main is undeclared"},
      {"a syntax error", program("fmt.Println(\"a\""), "main.go:8:"},
      {"an unknown name", program("fmt.Println(x)"), "./main.go:8:13: undefined: x"},
      {"a variable that is not used", program("x := 1\nfmt.Println()"), "./main.go:8:1:"},
      {"an import that is not used", program(""), "./main.go:4:2: \"fmt\" imported and not used"},
      {"a type that does not fit", program("var n int = \"text\"\nfmt.Println(n)"), "./main.go:8:13:"},
      {"a package that is not there", program("nothing.Do()", "\"nothing/here\""), "main.go:4:2:"},
      {"a module", program("uuid.New()", "\"github.com/google/uuid\""), "name the module of github.com/google/uuid"},
  };
  for (const auto& row : table) {
    CAPTURE(row.what);
    const auto result = go(row.code);
    CAPTURE(result.stderr_bytes);
    CHECK(result.reason == Reason::kCompileFailed);
    CHECK(contains(result.stderr_bytes, row.message));
    CHECK(result.stdout_bytes.empty());
    CHECK(result.exit_code != 0);
  }
}

TEST_CASE("go: memory and time have their limits") {
  if (!is_here("go")) return;
  const auto greedy =
      go(program("var all [][]byte\nfor {\n\tb := make([]byte, 1<<20)\n\tfor i := range b {\n\t\tb[i] = 1\n\t}\n"
                 "\tall = append(all, b)\n\tif len(all) < 0 {\n\t\tfmt.Println()\n\t}\n}"));
  CHECK(greedy.reason == Reason::kMemoryLimit);
  CHECK(greedy.exit_code != 0);  // killed by a control group, else by its own runtime
  const std::string deep = "package main\n\nfunc f(n int) int { return f(n+1) + 1 }\n\nfunc main() { f(0) }\n";
  CHECK(contains(go(deep).stderr_bytes, "goroutine stack exceeds"));
  const auto endless = go(program("fmt.Println(\"up\")\nfor {\n}"), 2s);
  CHECK(endless.reason == Reason::kTimeout);
  CHECK(endless.stdout_bytes == "up\n");
}

TEST_CASE("go: calls share no build") {
  if (!is_here("go")) return;
  CHECK(go(program("fmt.Print(1)")).stdout_bytes == "1");
  CHECK(go(program("fmt.Print(2)")).stdout_bytes == "2");
  const auto written =
      go(program("_, err := os.Create(\"/opt/llm-sandbox/prepared/cache/trim2.txt\")\nfmt.Print(err != nil)",
                 "\"fmt\"\n\t\"os\""));
  CHECK(written.stdout_bytes == "true");
}

TEST_CASE("go: options and paths are not smuggled in by a name") {
  if (!is_here("go")) return;
  for (const char* name :
       {"-u", "./local", "../up", "/abs", "uuid", "github.com/google/uuid@", "github.com/../x",
        "https://github.com/google/uuid", "github.com/google/uuid@v1;id", "github.com/google/...", "a b.c/d", ""}) {
    CAPTURE(name);
    ExecutionRequest request;
    request.language = "go";
    request.code = "package main\n\nfunc main() {}\n";
    request.libraries = {name};
    CHECK(engine().run(request, {}).reason == Reason::kInvalidArgument);
  }
}

TEST_CASE("go: the examples run") { check_examples("go"); }
