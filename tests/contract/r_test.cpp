// R: programs end as with Rscript, and what they draw comes back.
#include <algorithm>
#include <vector>

#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

namespace {

using Names = std::vector<std::string>;

LanguageReport report() { return engine().report(*engine().languages().find("r")); }

bool has_library(const std::string& name) {
  const auto libraries = report().libraries;
  return std::any_of(libraries.begin(), libraries.end(), [&](const auto& one) { return one.starts_with(name + " "); });
}

/// Whether R is here, with the packages named; says so if not.
bool can_run(const Names& libraries = {}) {
  std::string missing = report().available ? "" : "R";
  for (const auto& library : libraries)
    if (missing.empty() && !has_library(library)) missing = library;
  if (!missing.empty()) MESSAGE("skipped: " << missing);
  return missing.empty();
}

ExecutionResult r(const std::string& code, std::chrono::milliseconds timeout = 120s) {
  ExecutionRequest request;
  request.code = code;
  request.language = "R";
  request.timeout = timeout;
  return engine().run(request, {});
}

/// Runs a program that is to end well and silently.
ExecutionResult draw(const std::string& code, std::chrono::milliseconds timeout = 120s) {
  auto result = r(code, timeout);
  CHECK(result.exit_code == 0);
  CHECK(result.stderr_bytes == "");
  CHECK_FALSE(result.reason);
  return result;
}

Names pictures(const ExecutionResult& result) {
  Names names;
  for (const auto& artifact : result.artifacts) names.push_back(artifact.name);
  return names;
}

bool noted(const ExecutionResult& result, const std::string& part) {
  return std::any_of(result.notes.begin(), result.notes.end(), [&](const auto& note) { return contains(note, part); });
}

struct Size {
  uint64_t width;
  uint64_t height;
  bool operator==(const Size&) const = default;
};

Size png_size(const Artifact& artifact) {
  REQUIRE(artifact.mime_type == "image/png");
  const auto number = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(artifact.content.at(i));
    return value;
  };
  return {number(16), number(20)};
}

struct Program {
  std::string what;
  std::string code;
  int exit_code;
  std::string out;
  std::string err;
};

const Program kPrograms[] = {
    {"output", "cat('a\\n'); print(1:3); message('b')", 0, "a\n[1] 1 2 3\n", "b\n"},
    {"an error", "cat('before\\n')\nstop('boom')\ncat('after\\n')", 1, "before\n", "Error: boom\nExecution halted\n"},
    {"an error in functions", "f <- function() stop('boom')\ng <- function() f()\ng()", 1, "",
     "Error in f() : boom\nCalls: g -> f\nExecution halted\n"},
    {"a missing variable", "print(nothing)", 1, "",
     "Error in print(nothing) : object 'nothing' not found\nExecution halted\n"},
    {"a missing package", "library(nothing)", 1, "",
     "Error in library(nothing) : there is no package called ‘nothing’\nExecution halted\n"},
    {"an error that is caught", "tryCatch(stop('x'), error = function(e) cat('caught', conditionMessage(e)))", 0,
     "caught x", ""},
    {"a warning comes at the end of its line", "warning('careful')\ncat('on\\n')", 0, "on\n",
     "Warning message:\ncareful \n"},
    {"on.exit and .Last",
     ".Last <- function() cat('last\\n')\nf <- function() { on.exit(cat('exit\\n')); stop('x') }\nf()", 1, "exit\n",
     "Error in f() : x\nExecution halted\n"},
    {".Last at the end", ".Last <- function() cat('last\\n')\ncat('first\\n')", 0, "first\nlast\n", ""},
    {"quit with a status", "quit(status = 7)\ncat('no')", 7, "", ""},
    {"q in a function", "f <- function() { cat('f\\n'); q('no', 3) }\nf()\ncat('no')", 3, "f\n", ""},
    {"the last value", "5 * 5\ninvisible(6)", 0, "[1] 25\n", ""},
    {"standard input", "print(readLines(file('stdin')))", 0, "character(0)\n", ""},
    {"not interactive", "print(interactive())\nprint(commandArgs(TRUE))", 0, "[1] FALSE\ncharacter(0)\n", ""},
    {"the namespace is empty", "print(ls(all.names = TRUE)); cat(search(), sep = ' ')", 0,
     "character(0)\n.GlobalEnv package:stats package:graphics package:grDevices package:utils package:datasets "
     "package:methods Autoloads package:base",
     ""},
    {"nothing is loaded but what R loads", "cat(sort(loadedNamespaces()))", 0,
     "base compiler datasets graphics grDevices methods stats utils", ""},
    {"the runner leaves no variable", "cat(Sys.getenv('R_PROFILE_USER', NA), commandArgs()[-1])", 0,
     "NA --no-echo --no-restore --file=/sandbox/main.R", ""},
    {"UTF-8", "x <- 'größe ✓'; cat(nchar(x), toupper(x))", 0, "7 GRÖßE ✓", ""},
    {"a child process", "cat(system2('echo', 'hello', stdout = TRUE))", 0, "hello", ""},
    {"several processes", "library(parallel); cat(unlist(mclapply(1:4, function(i) i^2, mc.cores = 2)))", 0, "1 4 9 16",
     ""},
    {"random numbers begin as they please", "set.seed(1); cat(sample(10, 3))", 0, "9 4 7", ""},
};

}  // namespace

TEST_CASE("R: programs end as with Rscript") {
  if (!can_run()) return;
  for (const auto& program : kPrograms) {
    CAPTURE(program.what);
    const auto result = r(program.code);
    CHECK(result.exit_code == program.exit_code);
    CHECK(result.stdout_bytes == program.out);
    CHECK(result.stderr_bytes == program.err);
    CHECK_FALSE(result.reason);
    CHECK(result.notes.empty());
    CHECK(result.artifacts.empty());
  }
}

TEST_CASE("R: what stands before a wrong line is run, and the line is told") {
  if (!can_run()) return;
  const auto result = r("cat('first\\n')\nx <- 1\ny y\n");
  CHECK(result.exit_code == 1);
  CHECK(result.stdout_bytes == "first\n");
  CHECK(contains(result.stderr_bytes, "Error: unexpected symbol in"));
  CHECK(noted(result, "main.R:3:3: unexpected symbol"));

  const auto unfinished = r("f <- function() {\n");
  CHECK(unfinished.exit_code == 1);
  CHECK(noted(unfinished, "main.R:2:0: unexpected end of input"));
}

TEST_CASE("R: output is there when a program is stopped") {
  if (!can_run()) return;
  const auto result = r("cat('before'); message('too'); plot(1); plot(2); plot(3); Sys.sleep(600)", 8s);
  CHECK(result.reason == Reason::kTimeout);
  CHECK(result.stdout_bytes == "before");
  CHECK(result.stderr_bytes == "too\n");
  CHECK(pictures(result) == Names{"figure-1.png", "figure-2.png"});  // nobody knows whether the third was finished
}

TEST_CASE("R: too much memory is named") {
  if (!can_run()) return;
  CHECK(r("x <- list()\nfor (i in 1:1000) x[[i]] <- rnorm(1e6)").reason == Reason::kMemoryLimit);
  CHECK(r("x <- numeric(1e14)").reason == Reason::kMemoryLimit);
}

TEST_CASE("R: a signal is named") {
  if (!can_run()) return;
  const auto result = r("plot(1); plot(2); tools::pskill(Sys.getpid(), tools::SIGKILL); Sys.sleep(600)");
  CHECK(result.reason == Reason::kSignal);
  CHECK(result.exit_code == 137);
  CHECK(pictures(result) == Names{"figure-1.png"});
}

TEST_CASE("R: each page is a figure, in the order of drawing") {
  if (!can_run()) return;
  const auto result = draw("plot(1); lines(1:2)\ndev.new(width = 3, height = 2); hist(mtcars$mpg)");
  CHECK(pictures(result) == Names{"figure-1.png", "figure-2.png"});
  CHECK(png_size(result.artifacts[0]) == Size{700, 700});
  CHECK(png_size(result.artifacts[1]) == Size{300, 200});
  CHECK(result.notes.empty());

  CHECK(draw("par(mfrow = c(1, 2)); plot(1); plot(2)").artifacts.size() == 1);
  CHECK(draw("plot(1); invisible(dev.off())\nplot(2)").artifacts.size() == 2);
  CHECK(draw("plot(1); graphics.off()").artifacts.size() == 1);
  CHECK(draw("f <- function() { plot(1); quit(status = 0) }\nf()").artifacts.size() == 1);
  CHECK(draw("options(device = 'nothing'); plot.new").artifacts.empty());
  const auto two = draw("dev.new(width = 3); dev.new(width = 4); plot(1); invisible(dev.set(2)); plot(2); plot(3)");
  REQUIRE(two.artifacts.size() == 3);
  CHECK(png_size(two.artifacts[0]).width == 400);
  CHECK(png_size(two.artifacts[2]).width == 300);

  const auto failed = r("plot(1); stop('boom')");
  CHECK(failed.exit_code == 1);
  CHECK(failed.artifacts.size() == 1);
}

TEST_CASE("R: an empty page is no figure, and nothing is left in the workspace") {
  if (!can_run()) return;
  CHECK(draw("plot.new()").artifacts.empty());
  CHECK(draw("dev.new(); library(grid); grid.newpage()").artifacts.empty());
  CHECK(draw("plot.new(); text(.5, .5, 'words')").artifacts.size() == 1);
  CHECK(draw("plot(1); invisible(dev.off()); cat(dir(all.files = TRUE, no.. = TRUE))").stdout_bytes == "main.R");
}

TEST_CASE("R: devices of the program's own write where it says, and are not captured as well") {
  if (!can_run()) return;
  const auto result = draw(
      "plot(1)\n"
      "png('a.png', 300, 250); plot(2); invisible(dev.off())\n"
      "plot(3)\n"
      "jpeg('b.jpg'); plot(4); invisible(dev.off())\n"
      "svg('c.svg'); plot(5); invisible(dev.off())\n"
      "pdf('d.pdf'); plot(6); invisible(dev.off())\n"
      "png('/tmp/e.png'); plot(7); invisible(dev.off())");
  CHECK(pictures(result) == Names{"figure-1.png", "a.png", "figure-2.png", "b.jpg", "c.svg", "d.pdf"});
  CHECK(png_size(result.artifacts[1]) == Size{300, 250});
}

TEST_CASE("R: a figure can be copied and drawn again as on a screen") {
  if (!can_run()) return;
  CHECK(pictures(draw("plot(1); invisible(dev.copy(png, 'copy.png')); graphics.off()")) ==
        Names{"figure-1.png", "copy.png"});
  CHECK(draw("plot(1); p <- recordPlot(); plot.new(); replayPlot(p)").artifacts.size() == 2);
}

TEST_CASE("R: the program's own names do not get in the way of the capture") {
  if (!can_run()) return;
  const auto result = draw(
      "sprintf <- file.exists <- paste0 <- function(...) stop('mine')\nrm(list = ls(all.names = TRUE)); c <- 3\n"
      "invisible(gc()); plot(1); setHook('plot.new', NULL, 'replace'); plot(2); plot(3)");
  CHECK(pictures(result) == Names{"figure-1.png", "figure-2.png", "figure-3.png"});
}

TEST_CASE("R: forked children draw without harm to their parent's figures") {
  if (!can_run()) return;
  const auto result = draw(
      "library(parallel); dev.new(width = 3, height = 3); plot(1)\n"
      "children <- mclapply(1:2, function(i) { dev.new(width = 2, height = 2); plot(i); dev.off(); plot(i) })\n"
      "plot(2)");
  std::vector<uint64_t> widths;
  for (const auto& artifact : result.artifacts) widths.push_back(png_size(artifact).width);
  CHECK(std::count(widths.begin(), widths.end(), 300) == 2);
}

TEST_CASE("R: a thousand figures are bounded, with a note") {
  if (!can_run()) return;
  const auto result = draw("for (i in 1:1000) plot(i)\ncat('done')", 300s);
  CHECK(result.stdout_bytes == "done");
  CHECK(result.artifacts.size() == engine().config().max_artifacts);
  CHECK(pictures(result).front() == "figure-1.png");
  CHECK(noted(result, "Only the first 50 images were captured."));
  CHECK(noted(draw("for (i in 1:110) { plot(i); dev.off() }"), "Only the first 50 images were captured."));
  CHECK_FALSE(noted(draw("for (i in 1:50) plot(i)"), "captured"));
}

TEST_CASE("R: a very large figure is bounded, with a note") {
  if (!can_run()) return;
  const auto result = draw("dev.new(width = 400, height = 200); plot(1)");
  REQUIRE(result.artifacts.size() == 1);
  const Size size = png_size(result.artifacts[0]);
  CHECK(size.width * size.height <= 40'100'000);
  CHECK(size.width * size.height > 39'000'000);
  CHECK(noted(result, "very large (400 x 200 inches)"));

  const auto impossible = draw("dev.new(width = 1e6, height = 20); plot(1)\ngraphics.off(); plot(2)");
  CHECK(pictures(impossible).back() == "figure-" + std::to_string(impossible.artifacts.size()) + ".png");
  CHECK(noted(impossible, "1e+06 x 20 inches"));
}

TEST_CASE("R: grid, lattice and ggplot2") {
  if (!can_run({"lattice", "ggplot2"})) return;
  const auto result = draw(
      "library(grid); grid.newpage(); grid.rect(width = .5)\n"
      "library(lattice)\nxyplot(mpg ~ wt, mtcars)\nfor (i in 1:2) print(bwplot(mpg ~ factor(cyl), mtcars))\n"
      "library(ggplot2)\nggplot(mtcars, aes(wt, mpg)) + geom_point()\n"
      "p <- ggplot(mtcars, aes(factor(cyl))) + geom_bar()\nf <- function() print(p)\nf()\n"
      "ggsave('saved.png', p, width = 2, height = 1, dpi = 100)");
  CHECK(pictures(result) == Names{"figure-1.png", "figure-2.png", "figure-3.png", "figure-4.png", "figure-5.png",
                                  "figure-6.png", "saved.png"});
  CHECK(png_size(result.artifacts[6]) == Size{200, 100});
}

TEST_CASE("R: a widget that is printed comes as a page of its own") {
  if (!can_run({"plotly"})) return;
  const auto result =
      r("suppressMessages(library(plotly))\nplot_ly(mtcars, x = ~wt, y = ~mpg, type = 'scatter', mode = 'markers')\n");
  CHECK(result.exit_code == 0);
  CHECK(result.stdout_bytes == "");
  REQUIRE(result.artifacts.size() == 1);
  CHECK(result.artifacts[0].mime_type == "text/html");
  CHECK(contains(result.artifacts[0].content, "Plotly.newPlot"));
}

TEST_CASE("R: each library that is said to be there can be loaded") {
  if (!can_run()) return;
  std::string names;
  for (const auto& library : report().libraries) names += "'" + library.substr(0, library.find(' ')) + "',";
  const auto result = r("for (name in c(" + names + " NULL)) if (!requireNamespace(name)) print(name)", 300s);
  CHECK(result.exit_code == 0);
  CHECK(result.stdout_bytes == "");
}

TEST_CASE("R: the examples run") {
  const Language& language = *engine().languages().find("r");
  for (const auto& example : language.examples) {
    CAPTURE(example.title);
    if (!can_run(contains(example.code, "ggplot2") ? Names{"ggplot2"} : Names{})) continue;
    const auto result = draw(example.code);
    CHECK((!result.stdout_bytes.empty() || !result.artifacts.empty()));
    CHECK(result.notes.empty());
  }
}
