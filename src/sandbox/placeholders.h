#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "languages/language.h"

namespace llm_sandbox {

/// What the "{words}" of a language's commands and environment stand for.
class Placeholders {
 public:
  /// Those that hold for every command: runtime, bin, runner, prepared, packages, file, build.
  Placeholders(const Language& language, const Runtime& runtime);

  void set(const std::string& word, std::string value) { values_["{" + word + "}"] = std::move(value); }
  std::string fill(std::string text) const;
  std::vector<std::string> fill(std::vector<std::string> texts) const;

 private:
  std::map<std::string, std::string> values_;
};

/// What every program of the language gets: nothing of the server's own environment. The runtime's folder comes first
/// in PATH, so that a program that starts `python3` or `node` by name gets the one that it runs on.
std::vector<std::string> environment_of(const Language& language, const Runtime& runtime,
                                        const Placeholders& placeholders);

/// Sets variables in an environment of "NAME=value" texts; one that is there already gets the new value.
void set_variables(std::vector<std::string>& environment, const std::vector<std::string>& additions);

}  // namespace llm_sandbox
