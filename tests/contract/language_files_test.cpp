// What a language file can say, with a language made for the purpose: the shell.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "contract.h"

using namespace llm_sandbox;
using namespace llm_sandbox::contract;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

/// A folder for layers that sandboxes can reach, whoever runs them.
class CacheFolder {
 public:
  CacheFolder() {
    REQUIRE(mkdtemp(path_.data()) != nullptr);
    std::filesystem::permissions(path_, std::filesystem::perms(0711));
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/var/tmp/llm-sandbox-test-XXXXXX";
};

json shell() {
  return json::parse(R"json({
    "name": "shell", "title": "Shell", "file_name": "main.sh", "run": ["{runtime}", "{file}"], "runtime_names": ["sh"],
    "version": ["{candidate}", "-c", "echo 1.2.3"], "how_to_install": "sudo apt-get install dash",
    "package_manager": "crates", "use_cases": ["Scripts"], "visualization_support": false,
    "examples": [{"title": "Hello", "description": "Print", "code": ["echo hello"]}]
  })json");
}

/// An install command that makes a file for each name; each run is told apart from any other.
json with_packages(const std::string& extra = "true") {
  json language = shell();
  language["packages"] = {{"name_pattern", "[a-z]+"},
                          {"install",
                           {"{runtime}", "-c",
                            "cat /proc/sys/kernel/random/uuid > {packages}/stamp; " + extra +
                                "; for name in \"$@\"; do echo \"$name\" > {packages}/$name.txt; done",
                            "install", "{names}"}},
                          {"environment", {{"SHELF", "{packages}"}}},
                          {"links", {{"shelf", "{packages}"}}}};
  return language;
}

std::unique_ptr<Engine> engine_for(const json& language, const CacheFolder& cache) {
  EngineConfig config;
  auto languages = LanguageCatalog::with({{language.dump(), ""}});
  REQUIRE_MESSAGE(languages, languages.error().text());
  config.languages = std::move(*languages);
  config.cache.folder = cache.path();
  config.compile_timeout = 3s;
  return engine_with(std::move(config));
}

ExecutionResult run(Engine& engine, const std::string& code, const std::vector<std::string>& libraries = {}) {
  ExecutionRequest request;
  request.language = "shell";
  request.code = code;
  request.libraries = libraries;
  auto result = engine.run(request, {});
  INFO("stderr: " << result.stderr_bytes);
  CHECK(result.reason != Reason::kBackendUnavailable);
  return result;
}

std::string all_notes(const ExecutionResult& result) {
  std::string text;
  for (const auto& note : result.notes) text += note + "\n";
  return text;
}

}  // namespace

TEST_CASE("a language of the user's own runs, and is found by its version") {
  const CacheFolder cache;
  const auto engine = engine_for(shell(), cache);
  CHECK(engine->languages().names().back() == "shell");
  CHECK(run(*engine, "echo $0; exit 4").stdout_bytes == "/sandbox/main.sh\n");
  CHECK(run(*engine, "exit 4").exit_code == 4);
  CHECK(engine->report(*engine->languages().find("shell")).version == "1.2.3");
}

TEST_CASE("what is compiled is run, and what does not compile is not") {
  const CacheFolder cache;
  json language = shell();
  language["compile"] = {"{runtime}", "-c", ". {file}", "compile"};
  language["run"] = {"{runtime}", "-c", "echo running; cat {build}/made"};
  const auto engine = engine_for(language, cache);

  const auto good = run(*engine, "echo thing > /tmp/.llm-sandbox/build/made; echo told; echo warned >&2");
  CHECK(good.stdout_bytes == "running\nthing\n");
  CHECK(good.stderr_bytes == "told\nwarned\n");
  CHECK_FALSE(good.reason);

  const auto bad = run(*engine, "echo line 1: wrong >&2; exit 3");
  CHECK(bad.reason == Reason::kCompileFailed);
  CHECK(bad.exit_code == 3);
  CHECK(bad.stdout_bytes.empty());
  CHECK(bad.stderr_bytes == "line 1: wrong\n");

  const auto slow = run(*engine, "echo begun; sleep 600");
  CHECK(slow.reason == Reason::kCompileFailed);
  CHECK(slow.stderr_bytes == "begun\n");
  CHECK(contains(all_notes(slow), "Compiling took longer than 3 s"));

  const auto killed = run(*engine, "kill -SEGV $$");
  CHECK(killed.reason == Reason::kCompileFailed);
  CHECK(contains(all_notes(killed), "While compiling: "));
}

TEST_CASE("a language has limits of its own") {
  const CacheFolder cache;
  json language = shell();
  language["limits"] = {{"processes", 24}, {"disk", "16 MiB"}};
  const auto engine = engine_for(language, cache);
  const auto disk = run(*engine, "head -c 30000000 /dev/zero > big; ls -l big | wc -l; exit 1");
  CHECK(disk.reason == Reason::kDiskLimit);
  CHECK(contains(all_notes(disk), "16 MiB"));
  const auto processes = run(*engine, "for i in $(seq 60); do sleep 60 & done; exit 1");
  CHECK(processes.reason == Reason::kProcessLimit);
}

TEST_CASE("what is prepared is made once, read-only, and by nobody's program") {
  const CacheFolder cache;
  json language = shell();
  language["prepare"] = {"{runtime}", "-c",
                         "cat /proc/sys/kernel/random/uuid > {prepared}/stamp; ls / > {prepared}/root"};
  const auto engine = engine_for(language, cache);
  const std::string show = "cat /opt/llm-sandbox/prepared/stamp";
  const auto first = run(*engine, show);
  CHECK(first.stdout_bytes.size() == 37);
  CHECK(run(*engine, show).stdout_bytes == first.stdout_bytes);
  CHECK(run(*engine_for(language, cache), show).stdout_bytes == first.stdout_bytes);
  CHECK(contains(run(*engine, "echo x > /opt/llm-sandbox/prepared/stamp").stderr_bytes, "Read-only file system"));

  language["prepare"][2] = "cat /proc/sys/kernel/random/uuid > {prepared}/stamp; true";
  CHECK(run(*engine_for(language, cache), show).stdout_bytes != first.stdout_bytes);
}

TEST_CASE("a language that cannot be prepared runs all the same, and says why it is slower once") {
  const CacheFolder cache;
  json language = shell();
  language["prepare"] = {"{runtime}", "-c", "echo no such luck; exit 1"};
  const auto engine = engine_for(language, cache);
  const auto first = run(*engine, "ls -A /opt/llm-sandbox/prepared; echo done");
  CHECK(first.stdout_bytes == "done\n");
  CHECK(contains(all_notes(first), "no such luck"));
  CHECK(run(*engine, "echo done").notes.empty());
}

TEST_CASE("a call does not wait for ever for a preparation, which goes on without it") {
  const CacheFolder cache;
  json language = shell();
  language["prepare"] = {"{runtime}", "-c", "sleep 2; echo made > {prepared}/stamp"};
  EngineConfig config;
  config.languages = *LanguageCatalog::with({{language.dump(), ""}});
  config.cache.folder = cache.path();
  config.preparation_patience = 100ms;
  const auto engine = engine_with(std::move(config));
  const std::string show = "cat /opt/llm-sandbox/prepared/stamp";
  CHECK(run(*engine, show).stdout_bytes.empty());
  const Deadline deadline = Deadline::after(60s);
  while (run(*engine, show).stdout_bytes != "made\n" && !deadline.passed()) continue;
  CHECK(run(*engine, show).stdout_bytes == "made\n");
  CHECK(LayerCache({cache.path()}).clear().size() == 1);
  while (run(*engine, show).stdout_bytes != "made\n" && !deadline.passed()) continue;
  CHECK(run(*engine, show).stdout_bytes == "made\n");
}

TEST_CASE("packages are installed once and are there read-only") {
  const CacheFolder cache;
  const auto engine = engine_for(with_packages(), cache);
  const std::string show = "cat $SHELF/stamp; cat shelf/*.txt; ls -A shelf";
  const auto first = run(*engine, show, {"beta", " alpha ", "beta"});
  CHECK_FALSE(first.reason);
  CHECK(contains(first.stdout_bytes, "alpha\nbeta\n"));
  CHECK(run(*engine, show, {"alpha", "beta"}).stdout_bytes == first.stdout_bytes);
  CHECK(run(*engine_for(with_packages(), cache), show, {"beta", "alpha"}).stdout_bytes == first.stdout_bytes);
  CHECK(run(*engine, show, {"alpha"}).stdout_bytes != first.stdout_bytes);
  CHECK(contains(run(*engine, "echo x > $SHELF/stamp", {"alpha"}).stderr_bytes, "Read-only file system"));
  CHECK(run(*engine, "echo [$SHELF]; ls -A").stdout_bytes == "[]\nmain.sh\n");
}

TEST_CASE("the same packages asked for at the same time are installed once") {
  const CacheFolder cache;
  const auto engine = engine_for(with_packages("sleep 1"), cache);
  std::vector<std::future<std::string>> stamps;
  for (int i = 0; i < 4; ++i)
    stamps.push_back(std::async(std::launch::async, [&] {
      ExecutionRequest request;
      request.language = "shell";
      request.code = "cat shelf/stamp";
      request.libraries = {"alpha"};
      return engine->run(request, {}).stdout_bytes;
    }));
  const std::string first = stamps[0].get();
  CHECK(first.size() == 37);
  for (size_t i = 1; i < stamps.size(); ++i) CHECK(stamps[i].get() == first);
}

TEST_CASE("an installation that fails is told in the manager's words, and the program does not run") {
  const CacheFolder cache;
  const auto engine =
      engine_for(with_packages("echo https://user:s3cret@host/ has no $1; echo so sorry >&2; exit 7"), cache);
  const auto result = run(*engine, "echo ran", {"alpha"});
  CHECK(result.reason == Reason::kInstallFailed);
  CHECK(result.stdout_bytes.empty());
  CHECK(contains(result.stderr_bytes, "Installing alpha failed: crates ended with exit code 7."));
  CHECK(contains(result.stderr_bytes, "host/ has no alpha"));
  CHECK(contains(result.stderr_bytes, "so sorry"));
  CHECK_FALSE(contains(result.stderr_bytes, "s3cret"));
}

TEST_CASE("a name that is none is refused before anything is done") {
  const CacheFolder cache;
  const auto engine = engine_for(with_packages(), cache);
  for (const std::string name : {"--index", "a b", "../x", "http://x", "a;id", "", "A", "a\nb", "{packages}"}) {
    CAPTURE(name);
    const auto result = run(*engine, "echo ran", {name});
    CHECK(result.reason == Reason::kInvalidArgument);
    CHECK(result.stdout_bytes.empty());
  }
  CHECK(run(*engine, "echo ran", std::vector<std::string>(101, "a")).reason == Reason::kInvalidArgument);
  CHECK(run(*engine_for(shell(), cache), "echo ran", {"a"}).reason == Reason::kInvalidArgument);
}

TEST_CASE("an installation reaches no network but by the proxy") {
  const CacheFolder cache;
  const auto engine = engine_for(with_packages("(env | grep -i proxy; cat /proc/net/dev) > {packages}/seen"), cache);
  const auto result = run(*engine, "cat shelf/seen", {"alpha"});
  CHECK(contains(result.stdout_bytes, "https_proxy=http://127.0.0.1:3128"));
  CHECK(contains(result.stdout_bytes, "NO_PROXY=\n"));
  CHECK(contains(result.stdout_bytes, "lo:"));
  const auto devices = split(result.stdout_bytes.substr(result.stdout_bytes.find("Inter-")), '\n');
  CHECK(devices.size() == 4);  // two lines of head, lo, the end
}

TEST_CASE("a cancelled installation ends at once and leaves nothing that is taken for a set") {
  const CacheFolder cache;
  const auto engine = engine_for(with_packages("sleep 600"), cache);
  std::stop_source stop;
  RequestContext context;
  context.stop = stop.get_token();
  context.on_progress = [&](const Progress& progress) {
    if (contains(progress.message, "installing")) stop.request_stop();
  };
  ExecutionRequest request;
  request.language = "shell";
  request.libraries = {"alpha"};
  CHECK(engine->run(request, context).reason == Reason::kCancelled);
  CHECK(LayerCache({cache.path()}).list().empty());
}

TEST_CASE("nothing of an installation can leave its folder") {
  const CacheFolder cache;
  const auto engine =
      engine_for(with_packages("ln -s /etc/shadow {packages}/shadow; ln -s / {packages}/root; "
                               "chmod 4755 {packages}/stamp; mkdir -m 0 {packages}/closed; mkfifo {packages}/pipe"),
                 cache);
  const auto result =
      run(*engine, "cat shelf/shadow; ls shelf/root/root; find shelf/ -perm /6000 -o -type p", {"alpha"});
  CHECK(result.stdout_bytes.empty());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           cache.path(), std::filesystem::directory_options::skip_permission_denied))
    CHECK((entry.symlink_status().permissions() & std::filesystem::perms::set_uid) == std::filesystem::perms::none);
  LayerCache layers({cache.path()});
  CHECK(layers.clear().size() == 1);
  CHECK(layers.list().empty());
}
