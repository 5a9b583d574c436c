#pragma once

#include "languages/language.h"
#include "mcp/json_writer.h"
#include "sandbox/engine.h"

namespace llm_sandbox::mcp {

/// The object that get_language_details and `sandbox://languages` give for a language; the order of its keys is part of
/// the interface.
void write_language_details(JsonWriter& writer, const Language& language, const LanguageReport& report);

}  // namespace llm_sandbox::mcp
