// A JDK is asked where it is, whatever shims and links lead to it; a JRE is told apart.
#include <doctest/doctest.h>

#include "languages/host_paths.h"
#include "languages/language.h"
#include "temp_folder.h"

using namespace llm_sandbox;

namespace {

/// An executable that answers as a JVM in `home` would.
void fake_jvm(const TempFolder& temp, const std::string& path, const std::string& home, const std::string& version) {
  temp.script(path, "printf '    java.home = %s\\n    java.version = %s\\n' " + home + " " + version + " >&2");
}

RuntimeSearch search(const std::string& path_list) {
  Language java = *LanguageCatalog::built_in().find("java");
  java.well_known_places.clear();
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    return name == "PATH" ? path_list + ":/usr/bin:/bin" : "/nowhere";
  };
  // Only the folders of the test: the machine's own Java must not serve.
  RuntimeFinder finder([](const std::string& path) { return !in_base_system(path); }, environment,
                       std::chrono::seconds(60));
  return *finder.find(java);
}

std::string why(const RuntimeSearch& search, const std::string& path) {
  for (const auto& rejected : search.rejected)
    if (rejected.path == path) return rejected.why;
  return "not looked at";
}

}  // namespace

TEST_CASE("a JRE is not enough, and is told so") {
  const TempFolder temp;
  fake_jvm(temp, "jre/bin/java", temp.path("jre"), "17.0.9");
  const auto found = search(temp.path("jre/bin"));
  const std::string said = why(found, temp.path("jre/bin/java"));
  CAPTURE(said);
  CHECK(said.find("has no compiler") != std::string::npos);
  CHECK(said.find("a JDK is needed") != std::string::npos);
}

TEST_CASE("a shim leads to the JDK that answers") {
  const TempFolder temp;
  fake_jvm(temp, "jdk/bin/javac", temp.path("jdk"), "21.0.2+13-LTS");
  fake_jvm(temp, "jdk/bin/java", temp.path("jdk"), "21.0.2+13-LTS");
  fake_jvm(temp, "shims/javac", temp.path("jdk"), "21.0.2+13-LTS");
  const auto found = search(temp.path("shims"));
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == temp.path("jdk/bin/javac"));
  CHECK(found.runtime->version == "21.0.2");
  CHECK(found.runtime->paths == std::vector<std::string>{temp.path("jdk")});
}

TEST_CASE("a JDK of which only java is on PATH is found") {
  const TempFolder temp;
  fake_jvm(temp, "jdk/bin/javac", temp.path("jdk"), "17");
  fake_jvm(temp, "jdk/bin/java", temp.path("jdk"), "17");
  fake_jvm(temp, "links/java", temp.path("jdk"), "17");
  const auto found = search(temp.path("links"));
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == temp.path("jdk/bin/javac"));
}

TEST_CASE("a Java that is too old or broken is told") {
  const TempFolder temp;
  fake_jvm(temp, "old/bin/javac", temp.path("old"), "1.8.0_392");
  fake_jvm(temp, "old/bin/java", temp.path("old"), "1.8.0_392");
  CHECK(why(search(temp.path("old/bin")), temp.path("old/bin/javac")).find("1.8.0") != std::string::npos);
  temp.script("broken/bin/javac", "echo 'libjvm.so is missing' >&2\nexit 1");
  CHECK(why(search(temp.path("broken/bin")), temp.path("broken/bin/javac")).find("libjvm.so is missing") !=
        std::string::npos);
}
