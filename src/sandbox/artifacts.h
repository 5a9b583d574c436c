#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/request.h"
#include "sandbox/session.h"

namespace llm_sandbox {

/// The MIME type of a picture or document, found by its first bytes ("image/png", "image/jpeg", "image/gif",
/// "image/webp", "image/svg+xml", "application/pdf", "text/html"); empty for anything else. The name is not looked at:
/// programs choose it.
std::string_view sniff_mime_type(std::string_view content);

struct ArtifactLimits {
  uint32_t count = 50;
  uint64_t total_bytes = uint64_t{20} << 20;
};

struct Artifacts {
  std::vector<Artifact> items;     ///< in the order in which they were drawn
  std::vector<std::string> notes;  ///< what was left out, and what the runners had to say
};

/// Collects what the program drew: the figures that the language's runner put into kArtifactFolder and the image files
/// of the workspace, each once, by time of writing. Never fails: what cannot be had is told in a note.
Artifacts collect_artifacts(Session& session, const ArtifactLimits& limits);

}  // namespace llm_sandbox
