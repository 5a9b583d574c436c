#pragma once

#include <string>
#include <string_view>

namespace llm_sandbox {

/// The SHA-256 digest as 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace llm_sandbox
