#include <doctest/doctest.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/process.h"
#include "languages/host_paths.h"
#include "languages/language.h"
#include "temp_folder.h"

using namespace llm_sandbox;
namespace fs = std::filesystem;

namespace {

const std::string kPython = "/usr/bin/python3";
const std::string kNode = "/usr/bin/node";

bool have(const std::string& program) {
  if (access(program.c_str(), X_OK) == 0) return true;
  MESSAGE("skipped: " << program);
  return false;
}

bool show_all(const std::string&) { return true; }

/// A language looked for only in the PATH that the test gives.
Language only_in_path(const std::string& name) {
  Language language = *LanguageCatalog::built_in().find(name);
  language.well_known_places.clear();
  return language;
}

std::function<std::optional<std::string>(const std::string&)> environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto value = values.find(name);
    return value == values.end() ? std::nullopt : std::optional(value->second);
  };
}

RuntimeSearch search(const Language& language, const std::string& path_list,
                     std::function<bool(const std::string&)> can_show = show_all, const std::string& home = "/nowhere",
                     std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  RuntimeFinder finder(std::move(can_show), environment({{"PATH", path_list}, {"HOME", home}}), patience);
  return *finder.find(language);
}

bool has_library(const Runtime& runtime, const std::string& start) {
  return std::any_of(runtime.libraries.begin(), runtime.libraries.end(),
                     [&](const auto& library) { return library.rfind(start, 0) == 0; });
}

std::string output_of(const std::string& executable, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), executable);
  const auto capture = run_and_capture({executable, arguments, {}, {}}, Deadline::after(std::chrono::minutes(1)));
  return capture ? capture->out : capture.error().text();
}

/// The system's Python once more, in a prefix of its own as pyenv or conda would build it.
std::string copied_python(const TempFolder& temp, const std::string& prefix) {
  const std::string version =
      output_of(kPython, {"-c", "import sys; print('python%d.%d' % sys.version_info[:2], end='')"});
  temp.folder(prefix + "/bin");
  temp.folder(prefix + "/lib");
  fs::copy_file(canonical(kPython), temp.path(prefix + "/bin/python3"));
  fs::create_directory_symlink("/usr/lib/" + version, temp.path(prefix + "/lib/" + version));
  return temp.path(prefix + "/bin/python3");
}

}  // namespace

TEST_CASE("the system's Python needs nothing beside the base system") {
  if (!have(kPython)) return;
  const auto found = search(only_in_path("python"), "/usr/bin");
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == kPython);
  CHECK(found.runtime->paths.empty());
  CHECK("Python " + found.runtime->version + "\n" == output_of(kPython, {"--version"}));
  CHECK(has_library(*found.runtime, "numpy ") == fs::exists("/usr/lib/python3/dist-packages/numpy"));
  CHECK(std::is_sorted(found.runtime->libraries.begin(), found.runtime->libraries.end(),
                       [](const auto& a, const auto& b) { return strcasecmp(a.c_str(), b.c_str()) < 0; }));
}

TEST_CASE("a virtual environment keeps its own libraries") {
  if (!have(kPython)) return;
  const TempFolder temp;
  output_of(kPython, {"-m", "venv", "--without-pip", temp.path("venv")});
  const std::string site = output_of(temp.path("venv/bin/python3"),
                                     {"-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')"});
  REQUIRE(site.rfind(temp.path("venv"), 0) == 0);
  const auto metadata = [](const std::string& name) {
    return "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.5\n";
  };
  const std::string below = site.substr(temp.path().size() + 1);
  temp.file(below + "/Mine-1.5.dist-info/METADATA", metadata("Mine"));
  temp.file(below + "/edited-1.5.dist-info/METADATA", metadata("edited"));
  temp.file(below + "/edited-1.5.dist-info/direct_url.json", R"({"dir_info": {"editable": true}, "url": "file:///x"})");

  const auto found = search(only_in_path("python"), temp.path("venv/bin") + ":/usr/bin");
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == temp.path("venv/bin/python3"));
  CHECK(found.runtime->paths == std::vector<std::string>{temp.path("venv")});
  CHECK(found.runtime->libraries == std::vector<std::string>{"Mine 1.5"});
}

TEST_CASE("a shim is resolved to the interpreter behind it") {
  if (!have(kPython)) return;
  const TempFolder temp;
  const std::string real = copied_python(temp, "versions/3");
  temp.script("shims/python3", "exec '" + real + "' \"$@\"");
  const auto found = search(only_in_path("python"), temp.path("shims"));
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == real);
  CHECK(found.runtime->paths == std::vector<std::string>{temp.path("versions/3")});
}

TEST_CASE("a virtual environment of another Python needs both prefixes, also when named by a link") {
  if (!have(kPython)) return;
  const TempFolder temp;
  copied_python(temp, "versions/3.0");
  fs::create_directory_symlink(temp.path("versions/3.0"), temp.path("versions/3"));
  output_of(temp.path("versions/3/bin/python3"), {"-m", "venv", "--without-pip", temp.path("venv")});
  const auto found = search(only_in_path("python"), temp.path("venv/bin"));
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == temp.path("venv/bin/python3"));
  CHECK(is_within_any(temp.path("venv"), found.runtime->paths));
  CHECK(is_within_any(temp.path("versions/3.0"), found.runtime->paths));
  CHECK(uncovered_link(found.runtime->executable, found.runtime->paths) == "");
}

TEST_CASE("what cannot be shown is not even run, and the next candidate is taken") {
  if (!have(kPython)) return;
  const TempFolder temp;
  temp.script("closed/python3", "touch '" + temp.path("was-run") + "'; exec " + kPython + " \"$@\"");
  const auto found = search(only_in_path("python"), temp.path("closed") + ":/usr/bin",
                            [&](const std::string& path) { return !is_within(path, temp.path("closed")); });
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == kPython);
  REQUIRE(found.rejected.size() == 1);
  CHECK(found.rejected[0].path == temp.path("closed/python3"));
  CHECK(found.rejected[0].why.rfind("found but not reachable for the sandbox: " + temp.path("closed"), 0) == 0);
  CHECK_FALSE(fs::exists(temp.path("was-run")));
}

TEST_CASE("an interpreter whose prefix cannot be shown is not taken") {
  if (!have(kPython)) return;
  const TempFolder temp;
  const std::string real = copied_python(temp, "closed/3");
  temp.script("shims/python3", "exec '" + real + "' \"$@\"");
  const auto found = search(only_in_path("python"), temp.path("shims"),
                            [&](const std::string& path) { return !is_within(path, temp.path("closed")); });
  CHECK_FALSE(found.runtime);
  REQUIRE(found.rejected.size() == 1);
  CHECK(found.rejected[0].why.rfind("found but not reachable for the sandbox: " + temp.path("closed/3"), 0) == 0);
}

TEST_CASE("an interpreter installed into the home folder itself is not taken") {
  if (!have(kPython)) return;
  const TempFolder temp;
  copied_python(temp, "home");
  const auto found = search(only_in_path("python"), temp.path("home/bin"), show_all, temp.path("home"));
  CHECK_FALSE(found.runtime);
  REQUIRE(found.rejected.size() == 1);
  CHECK(found.rejected[0].why.find("never shown to a sandbox") != std::string::npos);
}

TEST_CASE("broken interpreters are passed over, each with its reason") {
  if (!have(kPython)) return;
  const TempFolder temp;
  temp.script("fails/python3", "echo first >&2; echo 'no such library' >&2; exit 3");
  temp.script("babbles/python3", "echo hello");
  temp.script(
      "lies/python3",
      R"(echo '{"executable":"/nowhere/python","version":"3.11.2","paths":[],"libraries":[],"virtual":false}')");
  temp.file("empty/python3", "", 0755);
  std::string path_list;
  for (const auto* name : {"fails", "babbles", "lies", "empty"}) path_list += temp.path(name) + ":";
  const auto found = search(only_in_path("python"), path_list + "/usr/bin");
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == kPython);
  REQUIRE(found.rejected.size() == 4);
  CHECK(found.rejected[0].why == "does not work: it ended with exit code 3: no such library");
  CHECK(found.rejected[1].why == "does not work: it did not say what it is");
  CHECK(found.rejected[2].why == "does not work: the executable it names (/nowhere/python) cannot be run");
  CHECK(found.rejected[3].why.rfind("does not work: ", 0) == 0);
}

TEST_CASE("an interpreter that hangs is given up") {
  const TempFolder temp;
  temp.script("python3", "exec /bin/sleep 600");
  const auto found = search(only_in_path("python"), temp.path(), show_all, "/nowhere", std::chrono::milliseconds(300));
  CHECK_FALSE(found.runtime);
  REQUIRE(found.rejected.size() == 1);
  CHECK(found.rejected[0].why == "does not work: " + temp.path("python3") + " did not end in time");
}

TEST_CASE("a runtime that is too old is not taken (its age is a fake)") {
  const TempFolder temp;
  const auto old = [&](const std::string& name, const std::string& version) {
    temp.script(name, "echo '{\"executable\":\"/bin/sh\",\"version\":\"" + version +
                          "\",\"paths\":[],\"libraries\":[],\"virtual\":false}'");
  };
  old("python3", "3.7.16");
  old("node", "16.20.2");
  const auto python = search(only_in_path("python"), temp.path());
  CHECK_FALSE(python.runtime);
  REQUIRE(python.rejected.size() == 1);
  CHECK(python.rejected[0].why == "too old: it is version 3.7.16, Python 3.8 or newer is needed");
  const auto node = search(only_in_path("javascript"), temp.path());
  REQUIRE(node.rejected.size() == 1);
  CHECK(node.rejected[0].why == "too old: it is version 16.20.2, JavaScript 18 or newer is needed");
  old("python3", "3.10.0");
  CHECK(search(only_in_path("python"), temp.path()).runtime);
}

TEST_CASE("the interpreter is asked in a clean environment") {
  if (!have(kPython)) return;
  const TempFolder temp;
  temp.script("python3", "env | sort > '" + temp.path("environment") + "'; exec " + kPython + " \"$@\"");
  CHECK(search(only_in_path("python"), temp.path() + ":/usr/bin").runtime);
  const std::string seen = read_file(temp.path("environment"));
  CHECK(seen.find("PATH=" + temp.path() + ":/usr/bin\n") != std::string::npos);
  CHECK(seen.find("HOME=/nowhere\n") != std::string::npos);
  CHECK(std::count(seen.begin(), seen.end(), '\n') <= 3);  // the shell adds PWD
}

TEST_CASE("a runtime outside of PATH is found in a well-known place") {
  if (!have(kPython)) return;
  const TempFolder temp;
  const std::string real = copied_python(temp, ".pyenv/versions/3.99.1");
  Language language = *LanguageCatalog::built_in().find("python");
  language.well_known_places = {"~/.pyenv/versions/*/bin"};
  const auto found = search(language, "", show_all, temp.path());
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == real);
}

TEST_CASE("node is found through links, as the file it really is") {
  if (!have(kNode)) return;
  const TempFolder temp;
  fs::create_symlink(kNode, temp.path("node"));
  const auto found = search(only_in_path("javascript"), temp.path());
  REQUIRE(found.runtime);
  CHECK(found.runtime->executable == canonical(kNode));
  CHECK(found.runtime->paths.empty());
  CHECK("v" + found.runtime->version + "\n" == output_of(kNode, {"--version"}));
}

TEST_CASE("many who ask at once get the answer of one search") {
  if (!have(kPython)) return;
  const TempFolder temp;
  temp.script("python3", "echo asked >> '" + temp.path("log") + "'; exec " + kPython + " \"$@\"");
  RuntimeFinder finder(show_all, environment({{"PATH", temp.path()}, {"HOME", "/nowhere"}}));
  const Language language = only_in_path("python");
  std::vector<std::shared_ptr<const RuntimeSearch>> answers(8);
  {
    std::vector<std::jthread> threads;
    for (auto& answer : answers) threads.emplace_back([&] { answer = finder.find(language); });
  }
  for (const auto& answer : answers) CHECK(answer == answers[0]);
  CHECK(answers[0]->runtime);
  CHECK(finder.find(language) == answers[0]);
  CHECK(read_file(temp.path("log")) == "asked\n");
}

TEST_CASE("a runtime that has been removed is looked for again") {
  if (!have(kPython)) return;
  const TempFolder temp;
  const std::string real = copied_python(temp, "versions/3");
  RuntimeFinder finder(show_all,
                       environment({{"PATH", temp.path("versions/3/bin") + ":/usr/bin"}, {"HOME", "/nowhere"}}));
  const Language language = only_in_path("python");
  REQUIRE(finder.find(language)->runtime);
  CHECK(finder.find(language)->runtime->executable == real);
  fs::remove(real);
  REQUIRE(finder.find(language)->runtime);
  CHECK(finder.find(language)->runtime->executable == kPython);
}
