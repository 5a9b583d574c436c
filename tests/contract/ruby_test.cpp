// Ruby: programs end as with ruby alone, but what they print is seen at once.
#include <vector>

#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

namespace {

LanguageReport report() { return engine().report(*engine().languages().find("ruby")); }

bool can_run() {
  const bool available = report().available;
  if (!available) MESSAGE("skipped: ruby");
  return available;
}

ExecutionResult ruby(const std::string& code, std::chrono::milliseconds timeout = 60s) {
  ExecutionRequest request;
  request.code = code;
  request.language = "rb";
  request.timeout = timeout;
  return engine().run(request, {});
}

struct Program {
  std::string what;
  std::string code;
  int exit_code;
  std::string out;
  std::string err;  ///< a part of it; empty: nothing at all
};

const Program kPrograms[] = {
    {"output", "puts 'a'; $stderr.puts 'b'; print 1, 2", 0, "a\n12", "b\n"},
    {"an error", "puts 'before'\n\nraise ArgumentError, 'boom'\nputs 'after'", 1, "before\n",
     "/sandbox/main.rb:3:in `<main>': boom (ArgumentError)"},
    {"an error in methods", "def f\n  1 / 0\nend\ndef g = f\ng", 1, "", "/sandbox/main.rb:2:in `/': divided by 0"},
    {"a name that is missing", "\nnothing", 1, "", "/sandbox/main.rb:2:in `<main>': undefined local variable"},
    {"a syntax error", "puts 'no'\nif true\n  puts 1\n", 1, "", "/sandbox/main.rb:3: syntax error"},
    {"a library that is missing", "\n\nrequire 'nothing'", 1, "", "from /sandbox/main.rb:3:in `<main>'"},
    {"exit", "at_exit { puts 'last' }\nputs 'first'\nexit 5\nputs 'no'", 5, "first\nlast\n", ""},
    {"exit! runs nothing more", "at_exit { puts 'last' }\nputs 'first'\nexit! 6", 6, "first\n", ""},
    {"abort", "at_exit { puts $!.class }\nabort 'sorry'", 1, "SystemExit\n", "sorry\n"},
    {"SystemExit is an exception", "begin\n  exit 3\nrescue SystemExit => e\n  puts e.status\nend", 0, "3\n", ""},
    {"warnings", "warn 'careful'\nX = 1\nX = 2", 0, "", "/sandbox/main.rb:3: warning: already initialized constant X"},
    {"the program itself", "p $0 == __FILE__, __FILE__, ARGV, __method__, self", 0,
     "true\n\"/sandbox/main.rb\"\n[]\nnil\nmain\n", ""},
    {"DATA", "puts DATA.read\n__END__\nthe end", 0, "the end\n", ""},
    {"magic comments",
     "# frozen_string_literal: true\np 'a'.frozen?\nbegin\n  'a' << 'b'\nrescue => e\n  puts e.class\nend", 0,
     "true\nFrozenError\n", ""},
    {"strings are not frozen by themselves", "x = 'a'\nx << 'b'\nputs x", 0, "ab\n", ""},
    {"no trace of the runner",
     "p local_variables, caller, $LOADED_FEATURES.grep(/llm/), $LOAD_PATH.grep(/llm/), ENV.keys.grep(/RUBY|GEM/), "
     "Thread.list.size",
     0, "[]\n[]\n[]\n[]\n[]\n1\n", ""},
    {"libraries load after it", "require 'set'; require 'json'; require 'set'\nputs JSON.generate([1, nil])", 0,
     "[1,null]\n", ""},
    {"standard input", "p $stdin.read, gets", 0, "\"\"\nnil\n", ""},
    {"fork", "puts 'once'\npid = fork { puts 'child'; exit 4 }\nProcess.wait pid\np $?.exitstatus", 0,
     "once\nchild\n4\n", ""},
    {"threads", "puts 3.times.map { |i| Thread.new { i * 2 } }.map(&:value).inspect", 0, "[0, 2, 4]\n", ""},
    {"a child process", "puts `echo hello`\nsystem('exit 2')\np $?.exitstatus", 0, "hello\n2\n", ""},
    {"a trap", "trap('TERM') { puts 'trapped'; exit 9 }\nProcess.kill 'TERM', $$\nsleep", 9, "trapped\n", ""},
    {"UTF-8", "puts 'größe ✓'.upcase, __ENCODING__", 0, "GRÖSSE ✓\nUTF-8\n", ""},
    {"classes", "class A\n  def initialize = @a = 1\nend\np ObjectSpace.each_object(Class).include?(A)", 0, "true\n",
     ""},
};

}  // namespace

TEST_CASE("ruby: programs end as with ruby alone") {
  if (!can_run()) return;
  for (const auto& program : kPrograms) {
    CAPTURE(program.what);
    const auto result = ruby(program.code);
    CAPTURE(result.stderr_bytes);
    CHECK(result.exit_code == program.exit_code);
    CHECK(result.stdout_bytes == program.out);
    if (program.err.empty())
      CHECK(result.stderr_bytes == "");
    else
      CHECK(contains(result.stderr_bytes, program.err));
    CHECK_FALSE(contains(result.stderr_bytes, "llm-sandbox"));
    CHECK_FALSE(result.reason);
    CHECK(result.notes.empty());
  }
}

TEST_CASE("ruby: output is there when a program is stopped") {
  if (!can_run()) return;
  const auto result = ruby("print 'before'\nsleep", 3s);
  CHECK(result.reason == Reason::kTimeout);
  CHECK(result.stdout_bytes == "before");
}

TEST_CASE("ruby: too much memory is named") {
  if (!can_run()) return;
  CHECK(ruby("x = []\nloop { x << 'a' * (8 << 20) }").reason == Reason::kMemoryLimit);
}

TEST_CASE("ruby: a signal is named") {
  if (!can_run()) return;
  const auto result = ruby("print 'up'\nProcess.kill 'KILL', $$\nsleep");
  CHECK(result.reason == Reason::kSignal);
  CHECK(result.exit_code == 137);
  CHECK(result.stdout_bytes == "up");
}

TEST_CASE("ruby: each library that is said to be there can be used") {
  if (!can_run()) return;
  std::string program;
  for (const auto& library : report().libraries) {
    const size_t space = library.find(' ');
    program += "gem '" + library.substr(0, space) + "', '" + library.substr(space + 1) + "'\n";
  }
  const auto result = ruby(program + "require 'rake' if Gem.loaded_specs['rake']\nputs 'all'");
  CHECK(result.stderr_bytes == "");
  CHECK(result.stdout_bytes == "all\n");
}

TEST_CASE("ruby: the examples run") {
  if (!can_run()) return;
  for (const auto& example : engine().languages().find("ruby")->examples) {
    CAPTURE(example.title);
    const auto result = ruby(example.code);
    CHECK(result.exit_code == 0);
    CHECK(result.stderr_bytes == "");
    CHECK_FALSE(result.stdout_bytes.empty());
  }
}
