#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"

namespace llm_sandbox::mcp {

using Json = nlohmann::json;

/// Bounds on a message; the size in bytes is the transport's affair.
constexpr size_t kMaxJsonDepth = 64;
constexpr size_t kMaxJsonValues = 200'000;  ///< all values together: a tree costs far more memory than its text

/// Parses one JSON text (RFC 8259). The bounds are checked while parsing, so that neither nesting nor number can
/// exhaust anything. Of members with the same name the last one counts; half a surrogate pair becomes U+FFFD.
/// kTooLarge, kProtocol (not JSON, or not UTF-8).
Result<Json> parse_json(std::string_view text);

}  // namespace llm_sandbox::mcp
