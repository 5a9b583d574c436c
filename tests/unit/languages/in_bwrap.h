#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/text.h"
#include "languages/language.h"
#include "temp_folder.h"

namespace llm_sandbox {

/// What a program did.
struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;
  std::vector<std::pair<std::string, std::string>> artifacts;  ///< name and content, in name order
  std::vector<std::string> notes;
  std::vector<std::string> workspace;  ///< names left in it, sorted

  std::vector<std::string> artifact_names() const {
    std::vector<std::string> names;
    for (const auto& artifact : artifacts) names.push_back(artifact.first);
    return names;
  }
};

/// Runs programs with the system's interpreter as an engine would, in plain bwrap (the engine itself is another
/// room's).
class InBwrap {
 public:
  InBwrap(const Language& language, std::string runtime) : language_(language), runtime_(std::move(runtime)) {}

  std::string missing() const {
    for (const std::string& program : {std::string("/usr/bin/bwrap"), runtime_})
      if (access(program.c_str(), X_OK) != 0) return program;
    return {};
  }

  /// As config/languages says.
  Ran with_runner(const std::string& code) const { return run(code, true); }
  /// As the interpreter alone, in the same surroundings but for what the runner itself comes in by.
  Ran bare(const std::string& code) const { return run(code, false); }
  /// With a file in the place of the folder for what runners hand over.
  Ran without_artifact_folder(const std::string& code) const { return run(code, true, false); }

 private:
  std::string filled(std::string text) const {
    const std::pair<std::string, std::string> values[] = {
        {"{runtime}", runtime_}, {"{file}", "/sandbox/" + language_.file_name}, {"{runner}", "/llm-sandbox"}};
    for (const auto& [name, value] : values)
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
        text.replace(at, name.size(), value);
    return text;
  }

  std::vector<std::string> command(bool runner) const {
    std::vector<std::string> argv;
    for (const auto& argument : language_.run)
      if (runner || argument.find("{runner}") == std::string::npos) argv.push_back(filled(argument));
    return argv;
  }

  Ran run(const std::string& code, bool runner, bool artifact_folder = true) const {
    const TempFolder host;
    host.file("workspace/" + language_.file_name, code);
    for (const auto& file : language_.runner_files) host.file("runner/" + file.name, file.content);
    SpawnSpec spec;
    spec.executable = "/usr/bin/bwrap";
    spec.argv = {"bwrap",
                 "--unshare-all",
                 "--die-with-parent",
                 "--proc",
                 "/proc",
                 "--dev",
                 "/dev",
                 "--tmpfs",
                 "/tmp",
                 "--ro-bind",
                 "/usr",
                 "/usr",
                 "--ro-bind",
                 "/etc",
                 "/etc",
                 "--bind",
                 host.path("workspace"),
                 "/sandbox",
                 "--chdir",
                 "/sandbox",
                 "--clearenv"};
    const auto add = [&](std::vector<std::string> more) {
      spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    };
    for (const std::string link : {"/bin", "/sbin", "/lib", "/lib64"})
      if (std::filesystem::exists(link)) add({"--symlink", "usr" + link, link});
    if (artifact_folder)
      add({"--bind", host.folder("state"), "/tmp/.llm-sandbox"});
    else
      add({"--ro-bind", host.file("state", ""), "/tmp/.llm-sandbox"});
    if (runner) add({"--ro-bind", host.folder("runner"), "/llm-sandbox"});
    add({"--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8"});
    for (const auto& entry : language_.environment) {
      if (!runner && entry.find("{runner}") != std::string::npos) continue;
      const size_t equals = entry.find('=');
      add({"--setenv", entry.substr(0, equals), filled(entry.substr(equals + 1))});
    }
    add(command(runner));
    return collect(spec, host);
  }

  static Ran collect(const SpawnSpec& spec, const TempFolder& host) {
    auto capture = run_and_capture(spec, Deadline::after(std::chrono::minutes(2)));
    Ran ran;
    if (!capture) {
      ran.err = capture.error().text();
      return ran;
    }
    ran.exit_code = capture->exit_code;
    ran.out = std::move(capture->out);
    ran.err = std::move(capture->err);
    const std::filesystem::path artifacts = host.path("state/artifacts");
    if (std::filesystem::is_directory(artifacts))
      for (const auto& entry : std::filesystem::directory_iterator(artifacts))
        ran.artifacts.emplace_back(entry.path().filename(), read_file(entry.path()));
    std::sort(ran.artifacts.begin(), ran.artifacts.end());
    for (const auto& note : split(read_file(host.path("state/notes")), '\n'))
      if (!note.empty()) ran.notes.push_back(note);
    for (const auto& entry : std::filesystem::directory_iterator(host.path("workspace")))
      ran.workspace.push_back(entry.path().filename());
    std::sort(ran.workspace.begin(), ran.workspace.end());
    return ran;
  }

  Language language_;
  std::string runtime_;
};

}  // namespace llm_sandbox
