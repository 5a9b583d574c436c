#include "languages/language.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text.h"
#include "languages/embedded.h"

namespace llm_sandbox {
namespace {

constexpr size_t kStderrTailBytes = 16 << 10;

/// The built-in language of that name as the patch changes it; the patch alone where there is none.
std::string patched(const std::string& name, const nlohmann::json& patch) {
  for (const auto text : embedded_languages()) {
    auto language = nlohmann::json::parse(text);
    if (language.at("name") != name) continue;
    language.merge_patch(patch);
    return language.dump();
  }
  return patch.dump();
}

}  // namespace

bool says_out_of_memory(const Language& language, std::string_view stderr_bytes) {
  if (stderr_bytes.size() > kStderrTailBytes) stderr_bytes.remove_prefix(stderr_bytes.size() - kStderrTailBytes);
  const re2::StringPiece tail(stderr_bytes.data(), stderr_bytes.size());
  return std::any_of(language.out_of_memory_marks.begin(), language.out_of_memory_marks.end(),
                     [&](const auto& mark) { return RE2::PartialMatch(tail, RE2(mark, RE2::Latin1)); });
}

LanguageCatalog LanguageCatalog::built_in() {
  LanguageCatalog catalog;
  for (const auto text : embedded_languages()) {
    auto language = parse(text);
    if (!language) throw std::logic_error("built-in language: " + language.error().text());
    catalog.languages_.push_back(std::move(*language));
  }
  return catalog;
}

Result<LanguageCatalog> LanguageCatalog::with(const std::vector<LanguageSource>& sources) {
  LanguageCatalog catalog = built_in();
  for (const auto& [text, folder] : sources) {
    const auto patch = nlohmann::json::parse(text, nullptr, false);
    const auto name = patch.is_object() ? patch.find("name") : patch.end();
    if (!patch.is_object() || name == patch.end() || !name->is_string())
      return fail(ErrorCode::kInvalidArgument, "A language of the configuration is no JSON object with a \"name\".");
    const std::string whole = patched(name->get_ref<const std::string&>(), patch);
    auto language = parse(whole, folder);
    if (!language) return fail(std::move(language.error()).within("The language " + printable(name->dump())));
    const auto known = std::find_if(catalog.languages_.begin(), catalog.languages_.end(),
                                    [&](const Language& one) { return one.name == language->name; });
    if (known == catalog.languages_.end())
      catalog.languages_.push_back(std::move(*language));
    else
      *known = std::move(*language);
  }
  return catalog;
}

const std::string& Language::file_name_for(std::string_view asked) const {
  const std::string wanted = to_lower(trim(asked));
  const auto other =
      std::find_if(file_names.begin(), file_names.end(), [&](const auto& one) { return one.first == wanted; });
  return other == file_names.end() ? file_name : other->second;
}

const Language* LanguageCatalog::find(std::string_view name) const {
  const std::string wanted = to_lower(trim(name));
  const auto known = std::find_if(languages_.begin(), languages_.end(), [&](const Language& language) {
    return language.name == wanted ||
           std::find(language.aliases.begin(), language.aliases.end(), wanted) != language.aliases.end() ||
           std::any_of(language.file_names.begin(), language.file_names.end(),
                       [&](const auto& one) { return one.first == wanted; });
  });
  return known == languages_.end() ? nullptr : &*known;
}

std::vector<std::string> LanguageCatalog::names() const {
  std::vector<std::string> result;
  for (const auto& language : languages_) result.push_back(language.name);
  return result;
}

}  // namespace llm_sandbox
