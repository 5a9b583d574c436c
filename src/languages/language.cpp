#include "languages/language.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"
#include "languages/embedded.h"

namespace llm_sandbox {

LanguageCatalog LanguageCatalog::built_in() {
  LanguageCatalog catalog;
  for (const auto text : embedded_languages()) {
    auto language = parse(text);
    if (!language) throw std::logic_error("built-in language: " + language.error().text());
    catalog.languages_.push_back(std::move(*language));
  }
  return catalog;
}

const Language* LanguageCatalog::find(std::string_view name) const {
  const std::string wanted = to_lower(trim(name));
  const auto known = std::find_if(languages_.begin(), languages_.end(), [&](const Language& language) {
    return language.name == wanted ||
           std::find(language.aliases.begin(), language.aliases.end(), wanted) != language.aliases.end();
  });
  return known == languages_.end() ? nullptr : &*known;
}

std::vector<std::string> LanguageCatalog::names() const {
  std::vector<std::string> result;
  for (const auto& language : languages_) result.push_back(language.name);
  return result;
}

}  // namespace llm_sandbox
