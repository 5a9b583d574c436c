#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace llm_sandbox {

/// The texts of config/languages/*.json, embedded at build time, in the order of CONTRACT.
std::vector<std::string_view> embedded_languages();

/// An embedded file of src/languages/, by its path below that folder ("python/runner/sitecustomize.py").
std::optional<std::string_view> embedded_script(std::string_view path);

}  // namespace llm_sandbox
