#include "sandbox/package_names.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"

namespace llm_sandbox {
namespace {

/// A package name without version and, where the manager takes no notice of them, spelling differences (PEP 503).
std::string package_key(const PackageManager& packages, std::string_view name) {
  std::string key(trim(name.substr(0, name.find(' '))));
  if (!packages.names_fold) return key;
  key = to_lower(key);
  std::replace_if(
      key.begin(), key.end(), [](char c) { return c == '_' || c == '.'; }, '-');
  return key;
}

Error refused(const Language& language, const std::string& name) {
  return {ErrorCode::kInvalidArgument,
          "'" + printable(name.substr(0, kMaxPackageName)) + "' is no name of a package for " + language.title + " (" +
              language.package_manager + ").",
          "Name packages only, with a version where the package manager knows such; options, addresses and paths are "
          "refused."};
}

}  // namespace

Result<std::vector<std::string>> checked_packages(const Language& language, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  if (wanted.empty()) return names;
  if (!language.packages)
    return fail(ErrorCode::kInvalidArgument, "No packages can be installed for " + language.title + ".",
                "Leave 'libraries' empty.");
  if (wanted.size() > kMaxPackages)
    return fail(ErrorCode::kInvalidArgument, "'libraries' names " + std::to_string(wanted.size()) +
                                                 " packages; at most " + std::to_string(kMaxPackages) +
                                                 " can be installed for one call.");
  const RE2 pattern(language.packages->name_pattern, RE2::Quiet);
  for (const auto& one : wanted) {
    std::string name(trim(one));
    if (name.size() > kMaxPackageName || !RE2::FullMatch(name, pattern)) return fail(refused(language, name));
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> missing_packages(const Language& language, const Runtime& runtime,
                                          const std::vector<std::string>& names) {
  if (!language.packages || !language.packages->installed_serves) return names;
  std::vector<std::string> missing;
  for (const auto& name : names) {
    const bool present = std::any_of(runtime.libraries.begin(), runtime.libraries.end(), [&](const auto& one) {
      return package_key(*language.packages, one) == package_key(*language.packages, name);
    });
    if (!present) missing.push_back(name);
  }
  return missing;
}

}  // namespace llm_sandbox
