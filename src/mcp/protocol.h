#pragma once

#include <optional>
#include <string_view>

namespace llm_sandbox::mcp {

/// The MCP revisions with a handshake ("legacy era"), oldest first. Code asks for features, never for a revision.
enum class Revision { k2024_11_05, k2025_03_26, k2025_06_18, k2025_11_25 };

constexpr Revision kRevisions[] = {Revision::k2024_11_05, Revision::k2025_03_26, Revision::k2025_06_18,
                                   Revision::k2025_11_25};
constexpr Revision kNewestRevision = Revision::k2025_11_25;

std::string_view revision_name(Revision revision);
std::optional<Revision> parse_revision(std::string_view name);

/// JSON-RPC batches came with 2025-03-26 and went with the revision after it.
constexpr bool has_batches(Revision r) { return r == Revision::k2025_03_26; }
constexpr bool has_tool_annotations(Revision r) { return r >= Revision::k2025_03_26; }
constexpr bool has_progress_message(Revision r) { return r >= Revision::k2025_03_26; }
constexpr bool has_structured_content(Revision r) { return r >= Revision::k2025_06_18; }
constexpr bool has_titles(Revision r) { return r >= Revision::k2025_06_18; }
/// An error about a message whose id can't be read has no id from here on; before, it has the id null.
constexpr bool omits_unknown_id(Revision r) { return r >= Revision::k2025_11_25; }

/// JSON-RPC 2.0 section 5.1, and MCP's own.
enum class RpcCode : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
  kResourceNotFound = -32002,            ///< up to 2025-11-25
  kUnsupportedProtocolVersion = -32022,  ///< from 2026-07-28
};

}  // namespace llm_sandbox::mcp
