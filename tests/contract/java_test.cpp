// Java as bare javac and java run it, wherever main stands and whatever the classes are called.
#include <string>
#include <vector>

#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;

namespace {

bool has_java() {
  static const bool available = engine().report(*engine().languages().find("java")).available;
  if (!available) MESSAGE("skipped: javac");
  return available;
}

ExecutionResult java(Engine& with, const std::string& code, std::chrono::milliseconds timeout = 60s) {
  ExecutionRequest request;
  request.language = "java";
  request.code = code;
  request.timeout = timeout;
  auto result = with.run(request, {});
  CHECK_MESSAGE(result.reason != Reason::kBackendUnavailable, result.stderr_bytes);
  return result;
}

ExecutionResult java(const std::string& code, std::chrono::milliseconds timeout = 60s) {
  return java(engine(), code, timeout);
}

/// One that passes over what is older than the given version, if the machine has any that is not; else null.
std::unique_ptr<Engine> engine_with_java(const std::string& version) {
  EngineConfig config;
  config.languages = *LanguageCatalog::with({{R"({"name": "java", "minimum_version": ")" + version + "\"}", ""}});
  auto newer = engine_with(std::move(config));
  if (newer->report(*newer->languages().find("java")).available) return newer;
  MESSAGE("skipped: java " << version);
  return nullptr;
}

/// A program whose main does just this.
std::string program(const std::string& body) {
  return "import java.util.*;\n\npublic class Main {\n  public static void main(String[] args) throws Exception {\n" +
         body + "\n  }\n}\n";
}

}  // namespace

TEST_CASE("java: main is found wherever it stands") {
  if (!has_java()) return;
  struct Row {
    const char* what;
    const char* code;
    const char* out;
  };
  const std::vector<Row> table = {
      {"a helper class before it",
       "class Person { String name = \"Ada\"; }\n"
       "public class Main { public static void main(String[] a) { System.out.print(new Person().name); } }",
       "Ada"},
      {"a package and a public class of any name",
       "package org.example.deep;\n"
       "public class Program { public static void main(String... a) { System.out.print(Program.class.getName()); } }",
       "org.example.deep.Program"},
      {"several public classes",
       "public class One { static String text() { return \"one\"; } }\n"
       "public class Two { public static void main(final String args[]) { System.out.print(One.text()); } }",
       "one"},
      {"a record",
       "record Point(int x, int y) { public static void main(String[] a) { System.out.print(new Point(1, 2)); } }",
       "Point[x=1, y=2]"},
      {"an enum",
       "enum Color { RED, GREEN; public static void main(String[] a) { System.out.print(values().length); } }", "2"},
      {"an interface", "interface Start { static void main(String[] a) { System.out.print(\"interface\"); } }",
       "interface"},
      {"of several the first",
       "class First { public static void main(String[] a) { System.out.print(\"first\"); } }\n"
       "public class Main { public static void main(String[] a) { System.out.print(\"second\"); } }",
       "first"},
      {"words in comments, strings and text blocks",
       "// class Comment { public static void main(String[] args) {} }\n"
       "/* public static void main(String[] args) */\n"
       "class Words {\n"
       "  String text = \"public static void main(String[] args)\";\n"
       "  String block = \"\"\"\n"
       "      public class Block { public static void main(String[] args) { } }\n"
       "      \"\"\";\n"
       "  char brace = '{';\n"
       "}\n"
       "class Real { public static void main(String[] args) { System.out.print(\"real\"); } }",
       "real"},
      {"a nested main does not count beside a real one",
       "class Outer { static class Inner { public static void main(String[] a) { System.out.print(\"inner\"); } } }\n"
       "class Other { public static void main(String[] a) { System.out.print(\"other\"); } }",
       "other"},
      {"neither do other mains",
       "class Private { private static void main(String[] a) { } }\n"
       "class Number { public static int main(String[] a) { return 1; } }\n"
       "class Object1 { public void main(String[] a) { } Object1(int x) { } }\n"
       "class List1 { public static void main(java.util.List<String> a) { } }\n"
       "class Good { public static void main(String[] a) { System.out.print(\"good\"); } }",
       "good"},
      {"an inherited one where there is no other",
       "class Child extends Middle { }\n"
       "abstract class Middle extends Base.Holder { }\n"
       "class Base { static class Holder { public static void main(String[] a) { System.out.print(\"base\"); } } }",
       "base"},
      {"names beyond ASCII",
       "public class Grüße { public static void main(String[] a) { System.out.print(Grüße.class.getName() + \" €\"); } "
       "}",
       "Grüße €"},
  };
  for (const auto& row : table) {
    CAPTURE(row.what);
    const auto result = java(row.code);
    CHECK(result.stdout_bytes == row.out);
    CHECK(result.stderr_bytes == "");
    CHECK(result.exit_code == 0);
    CHECK_FALSE(result.reason);
  }
}

TEST_CASE("java: instance main where the JDK has it") {
  const auto newer = engine_with_java("21");
  if (!newer) return;
  const auto printed = [&](const std::string& code) { return java(*newer, code).stdout_bytes; };
  CHECK(printed("void main() { System.out.print(\"bare\"); }") == "bare");
  CHECK(printed("class Main { void main() { System.out.print(\"instance\"); } }") == "instance");
  CHECK(printed("class A { void main() { System.out.print(\"a\"); } }\n"
                "class B { public static void main(String[] b) { System.out.print(\"classic first\"); } }") ==
        "classic first");
  CHECK(printed("public class Main { public static void main(String[] a) { System.out.print(\"plain\"); } }") ==
        "plain");
}

TEST_CASE("java: without a main that can be started, a sentence says what to write") {
  if (!has_java()) return;
  for (const char* code :
       {"class Outer { static class Inner { public static void main(String[] a) { System.out.print(1); } } }",
        "class Main { private static void main(String[] a) { System.out.print(1); } }",
        "class Main { static int twice(int x) { return 2 * x; } }", "", "// public static void main(String[] args)"}) {
    CAPTURE(code);
    const auto result = java(code);
    CHECK(result.reason == Reason::kCompileFailed);
    CHECK(contains(result.stderr_bytes, "public static void main(String[] args)"));
    CHECK(result.stdout_bytes.empty());
    CHECK(result.exit_code != 0);
  }
  CHECK(contains(java("class Outer { static class Inner { public static void main(String[] a) { } } }").stderr_bytes,
                 "Outer.Inner"));
}

TEST_CASE("java: what does not compile is not run, and the compiler's messages name the user's lines") {
  if (!has_java()) return;
  auto result = java("public class Main {\n  public static void main(String[] a) {\n    int x = 1\n  }\n}\n");
  CHECK(result.reason == Reason::kCompileFailed);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.stderr_bytes, "Main.java:3: error: ';' expected\n    int x = 1\n             ^\n1 error\n"));

  result = java(program("    System.out.println(\"not run\");\n    missing(1);"));
  CHECK(result.reason == Reason::kCompileFailed);
  CHECK(contains(result.stderr_bytes, "Main.java:6: error: cannot find symbol"));
  CHECK(contains(result.stderr_bytes, "symbol:   method missing(int)"));
  CHECK(result.stdout_bytes.empty());
  CHECK_FALSE(contains(result.stderr_bytes, "CompileProgram"));
}

TEST_CASE("java: a missing class is missing, even one called as the file") {
  if (!has_java()) return;
  const auto result = java("class App { public static void main(String[] a) { Main.run(); } }");
  CHECK(result.reason == Reason::kCompileFailed);
  CHECK(contains(result.stderr_bytes, "Main.java:1: error: cannot find symbol"));
  CHECK(contains(result.stderr_bytes, "\n1 error\n"));
}

TEST_CASE("java: warnings are seen, and the program runs") {
  if (!has_java()) return;
  const auto result = java(program("    List raw = new ArrayList(); raw.add(1); System.out.print(raw);"));
  CHECK(result.stdout_bytes == "[1]");
  CHECK(contains(result.stderr_bytes, "Note: Main.java uses unchecked or unsafe operations."));
  CHECK_FALSE(result.reason);
}

TEST_CASE("java: exceptions and exit codes are the program's own") {
  if (!has_java()) return;
  auto result = java(program("    throw new IllegalStateException(\"bad\");"));
  CHECK(result.exit_code == 1);
  CHECK(result.stderr_bytes ==
        "Exception in thread \"main\" java.lang.IllegalStateException: bad\n\tat Main.main(Main.java:5)\n");
  CHECK_FALSE(result.reason);

  result = java(program("    System.out.print(\"partial\"); System.exit(5);"));
  CHECK(result.exit_code == 5);
  CHECK(result.stdout_bytes == "partial");
  CHECK_FALSE(result.reason);

  result = java(
      "public class Main { static int deep(int x) { return deep(x + 1) + 1; }\n"
      "  public static void main(String[] a) { deep(0); } }");
  CHECK(result.exit_code == 1);
  CHECK(result.stderr_bytes.starts_with("Exception in thread \"main\" java.lang.StackOverflowError"));
  CHECK_FALSE(result.reason);
}

TEST_CASE("java: too much memory is told as such") {
  if (!has_java()) return;
  const auto result =
      java(program("    List<byte[]> all = new ArrayList<>();\n"
                   "    while (true) all.add(new byte[1 << 20]);"));
  CHECK(result.reason == Reason::kMemoryLimit);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.stderr_bytes, "java.lang.OutOfMemoryError: Java heap space"));
  CHECK(contains(result.stderr_bytes, "Main.java:6"));
}

TEST_CASE("java: too many threads are told as such") {
  if (!has_java()) return;
  const auto result =
      java(program("    for (int i = 0; i < 5000; i++) {\n"
                   "      Thread thread = new Thread(() -> {\n"
                   "        try { Thread.sleep(600_000); } catch (InterruptedException e) { }\n"
                   "      });\n"
                   "      thread.setDaemon(true);\n"
                   "      thread.start();\n"
                   "    }"));
  CHECK(contains(result.stderr_bytes, "unable to create native thread"));
  CHECK(result.exit_code == 1);
  // Without a control group the limit on memory, which counts stacks, may be met before that on threads.
  if (is_held("process limit")) CHECK(result.reason == Reason::kProcessLimit);
}

TEST_CASE("java: the heap follows the sandbox's memory") {
  if (!has_java()) return;
  const auto heap_with = [](uint64_t memory) {
    EngineConfig config;
    config.runtime->memory_bytes = memory;
    ExecutionRequest request;
    request.language = "java";
    request.code = program("    System.out.print(Runtime.getRuntime().maxMemory());");
    return std::stoull("0" + engine_with(std::move(config))->run(request, {}).stdout_bytes);
  };
  const uint64_t small = heap_with(uint64_t{400} << 20);
  CHECK(small > uint64_t{200} << 20);
  CHECK(small < uint64_t{400} << 20);
  const uint64_t large = heap_with(uint64_t{2} << 30);
  CHECK(large > uint64_t{1} << 30);
  CHECK(large < uint64_t{2} << 30);
}

TEST_CASE("java: ordinary programs fit") {
  if (!has_java()) return;
  const auto threads = java(
      "import java.util.concurrent.*;\n"
      "public class Main { public static void main(String[] a) throws Exception {\n"
      "  CountDownLatch all = new CountDownLatch(200);\n"
      "  Thread[] threads = new Thread[200];\n"
      "  for (int i = 0; i < threads.length; i++) {\n"
      "    threads[i] = new Thread(() -> { all.countDown(); try { all.await(); } catch (InterruptedException e) { } "
      "});\n"
      "    threads[i].start();\n"
      "  }\n"
      "  for (Thread thread : threads) thread.join();\n"
      "  System.out.print(all.getCount());\n"
      "} }");
  CHECK(threads.stdout_bytes == "0");
  CHECK(threads.stderr_bytes == "");

  const auto arrays =
      java(program("    int[][] all = new int[5][];\n"
                   "    for (int i = 0; i < 5; i++) all[i] = new int[25_000_000];\n"
                   "    System.out.print(all[4].length);"));
  CHECK(arrays.stdout_bytes == "25000000");
}

TEST_CASE("java: the surroundings are those of bare java") {
  if (!has_java()) return;
  CHECK(java(program("    System.out.print(System.in.read());")).stdout_bytes == "-1");
  CHECK(java(program("    System.out.print(\"Grüße, 世界 😀\");")).stdout_bytes == "Grüße, 世界 😀");
  CHECK(java(program("    System.out.print(args.length + \" \" + Thread.currentThread().getName());")).stdout_bytes ==
        "0 main");
  CHECK(java(program("    java.nio.file.Files.writeString(java.nio.file.Path.of(\"note.txt\"), \"kept\");\n"
                     "    System.out.print(new String(Main.class.getResourceAsStream(\"/note.txt\").readAllBytes()));\n"
                     "    System.out.print(\" \" + Arrays.toString(new java.io.File(\".\").list().length > 0\n"
                     "        ? new java.io.File(\"/tmp\").list((folder, name) -> name.startsWith(\"hs\")) : null));"))
            .stdout_bytes == "kept []");
  CHECK(java(program("    System.out.print(Class.forName(\"Main\").getDeclaredMethods().length);")).stdout_bytes ==
        "1");
}

TEST_CASE("java: output comes unbuffered") {
  if (!has_java()) return;
  const auto result = java(program("    System.out.print(\"before\");\n    Thread.sleep(600_000);"), 3s);
  CHECK(result.stdout_bytes == "before");
  CHECK(result.reason == Reason::kTimeout);
}

TEST_CASE("java: a picture written to the workspace comes back") {
  if (!has_java()) return;
  const auto result = java(
      "import java.awt.*;\nimport java.awt.image.BufferedImage;\nimport java.io.File;\nimport javax.imageio.ImageIO;\n"
      "public class Main { public static void main(String[] a) throws Exception {\n"
      "  BufferedImage image = new BufferedImage(120, 40, BufferedImage.TYPE_INT_RGB);\n"
      "  Graphics2D pen = image.createGraphics();\n"
      "  pen.setColor(Color.ORANGE);\n"
      "  pen.fillOval(5, 5, 30, 30);\n"
      "  pen.drawString(\"drawn\", 45, 25);\n"
      "  pen.dispose();\n"
      "  ImageIO.write(image, \"png\", new File(\"drawn.png\"));\n"
      "} }");
  CHECK(result.stderr_bytes == "");
  CHECK(result.exit_code == 0);
  REQUIRE(result.artifacts.size() == 1);
  CHECK(result.artifacts[0].name == "drawn.png");
  CHECK(result.artifacts[0].mime_type == "image/png");
}

TEST_CASE("java: the examples run") {
  if (!has_java()) return;
  const Language& language = *engine().languages().find("java");
  REQUIRE(language.examples.size() == 2);
  CHECK(java(language.examples[0].code).stdout_bytes == "Hello, World!\n");
  CHECK(java(language.examples[1].code).stdout_bytes == "I am Ada and 36 years old.\n");
}
