#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "languages/language.h"

namespace llm_sandbox {

constexpr size_t kMaxPackages = 100;
constexpr size_t kMaxPackageName = 200;  ///< bytes

/// The packages that a call asks for, by the language's grammar: without blanks around, sorted, each once.
/// kInvalidArgument names the first that is none (an option, a URL, a path).
Result<std::vector<std::string>> checked_packages(const Language& language, const std::vector<std::string>& wanted);

/// Those that the runtime does not have already.
std::vector<std::string> missing_packages(const Language& language, const Runtime& runtime,
                                          const std::vector<std::string>& names);

}  // namespace llm_sandbox
