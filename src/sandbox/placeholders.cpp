#include "sandbox/placeholders.h"

#include <algorithm>

#include "sandbox/sandbox.h"

namespace llm_sandbox {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=') + 1); }

}  // namespace

Placeholders::Placeholders(const Language& language, const Runtime& runtime) {
  set("runtime", runtime.executable);
  set("bin", folder_of(runtime.executable));
  set("runner", std::string(kRunnerFolder));
  set("prepared", std::string(kPreparedFolder));
  set("packages", std::string(kPackagesFolder));
  set("build", std::string(kBuildFolder));
  set("file", std::string(kWorkspace) + "/" + language.file_name);
}

std::string Placeholders::fill(std::string text) const {
  for (const auto& [word, value] : values_)
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
      text.replace(at, word.size(), value);
  return text;
}

std::vector<std::string> Placeholders::fill(std::vector<std::string> texts) const {
  for (auto& text : texts) text = fill(std::move(text));
  return texts;
}

std::vector<std::string> environment_of(const Language& language, const Runtime& runtime,
                                        const Placeholders& placeholders) {
  std::vector<std::string> environment = {
      "PATH=" + folder_of(runtime.executable) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "HOME=" + std::string(kTemporary),
      "TMPDIR=" + std::string(kTemporary),
      "LANG=C.UTF-8",
      "USER=sandbox",
      "LOGNAME=sandbox",
  };
  set_variables(environment, placeholders.fill(language.environment));
  return environment;
}

void set_variables(std::vector<std::string>& environment, const std::vector<std::string>& additions) {
  for (const auto& addition : additions) {
    const auto same = std::find_if(environment.begin(), environment.end(),
                                   [&](const auto& one) { return name_of(one) == name_of(addition); });
    if (same == environment.end())
      environment.push_back(addition);
    else
      *same = addition;
  }
}

}  // namespace llm_sandbox
