#include "mcp/protocol.h"

namespace llm_sandbox::mcp {

std::string_view revision_name(Revision revision) {
  switch (revision) {
    case Revision::k2024_11_05:
      return "2024-11-05";
    case Revision::k2025_03_26:
      return "2025-03-26";
    case Revision::k2025_06_18:
      return "2025-06-18";
    case Revision::k2025_11_25:
      return "2025-11-25";
  }
  return {};
}

std::optional<Revision> parse_revision(std::string_view name) {
  for (const Revision revision : kRevisions)
    if (revision_name(revision) == name) return revision;
  return std::nullopt;
}

}  // namespace llm_sandbox::mcp
