#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm_sandbox {

/// A small file of the host (/proc, /sys), at most 1 MiB of it; nullopt if it cannot be read.
std::optional<std::string> read_host_file(const std::string& path);

/// The parts of a line between blanks.
std::vector<std::string> words(std::string_view line);

/// Decimal digits and nothing else.
std::optional<uint64_t> to_number(std::string_view digits);

}  // namespace llm_sandbox
