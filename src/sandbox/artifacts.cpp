#include "sandbox/artifacts.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace llm_sandbox {
namespace {

constexpr uint64_t kMaxListedEntries = 10'000;
constexpr uint64_t kMaxDepth = 8;
constexpr size_t kMaxRunnerNotes = 20;
constexpr size_t kMaxNoteBytes = 500;
constexpr uint64_t kMaxNoteFileBytes = 64 << 10;

struct Candidate {
  std::string root;
  EntryMessage entry;
  bool from_runner;
};

bool has_picture_name(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string extension = to_lower(path.substr(dot + 1));
  for (const char* known : {"png", "jpg", "jpeg", "gif", "webp", "svg", "pdf"})
    if (extension == known) return true;
  return false;
}

/// What the program or the runner named it, safe to show. The runner's number, which keeps the order, is left out.
std::string shown_name(const Candidate& candidate) {
  std::string_view name = candidate.entry.path;
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (candidate.from_runner && digits > 0 && name.substr(digits).starts_with('-')) name.remove_prefix(digits + 1);
  return printable(name.substr(0, kMaxNoteBytes));
}

std::vector<Candidate> candidates_below(Session& session, std::string_view root, bool from_runner,
                                        std::vector<std::string>& notes) {
  std::vector<Candidate> found;
  auto entries = session.list(root, kMaxListedEntries, kMaxDepth);
  if (!entries) {
    if (entries.error().code == ErrorCode::kTooLarge)
      notes.push_back("The workspace holds more than " + std::to_string(kMaxListedEntries) +
                      " files; it was not searched for pictures.");
    return found;
  }
  for (auto& entry : *entries) {
    if (entry.type != EntryType::kFile || entry.size == 0) continue;
    if (from_runner ? entry.path.starts_with('.') : !has_picture_name(entry.path)) continue;  // '.': not finished
    found.push_back({std::string(root), std::move(entry), from_runner});
  }
  return found;
}

/// Runners tell what they could not capture in a file of one sentence a line. The program may have written it instead.
void append_runner_notes(Session& session, std::vector<std::string>& notes) {
  const auto text = session.get_file(".llm-sandbox/notes", kMaxNoteFileBytes, kTemporary);
  if (!text) return;
  size_t count = 0;
  for (const auto& line : split(*text, '\n')) {
    const std::string note = printable(trim(line).substr(0, kMaxNoteBytes));
    if (note.empty()) continue;
    if (++count > kMaxRunnerNotes) return;
    notes.push_back("From the sandbox: " + note);
  }
}

}  // namespace

std::string_view sniff_mime_type(std::string_view content) {
  if (content.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (content.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (content.starts_with("GIF87a") || content.starts_with("GIF89a")) return "image/gif";
  if (content.starts_with("RIFF") && content.substr(0, 16).substr(8).starts_with("WEBP")) return "image/webp";
  if (content.starts_with("%PDF-")) return "application/pdf";
  const std::string start = to_lower(trim(content.substr(0, 1024)));
  if (start.starts_with("<!doctype html") || start.starts_with("<html")) return "text/html";
  const bool is_markup = start.starts_with("<svg") || start.starts_with("<?xml") || start.starts_with("<!doctype svg");
  if (is_markup && start.find("<svg") != std::string::npos) return "image/svg+xml";
  return {};
}

Artifacts collect_artifacts(Session& session, const ArtifactLimits& limits) {
  Artifacts result;
  auto candidates = candidates_below(session, kArtifactFolder, true, result.notes);
  auto in_workspace = candidates_below(session, kWorkspace, false, result.notes);
  std::move(in_workspace.begin(), in_workspace.end(), std::back_inserter(candidates));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.entry.modified_ns < b.entry.modified_ns; });

  uint64_t total = 0;
  size_t left_out = 0;
  for (const auto& candidate : candidates) {
    if (result.items.size() >= limits.count || candidate.entry.size > limits.total_bytes - total) {
      ++left_out;
      continue;
    }
    auto content = session.get_file(candidate.entry.path, limits.total_bytes - total, candidate.root);
    if (!content) {
      ++left_out;
      continue;
    }
    const auto mime_type = sniff_mime_type(*content);
    if (mime_type.empty()) continue;
    total += content->size();
    result.items.push_back({shown_name(candidate), std::string(mime_type), std::move(*content)});
  }
  if (left_out > 0)
    result.notes.push_back(std::to_string(left_out) + (left_out == 1 ? " picture was" : " pictures were") +
                           " left out: an answer holds at most " + std::to_string(limits.count) + ", and " +
                           format_bytes(limits.total_bytes) + " in all.");
  append_runner_notes(session, result.notes);
  return result;
}

}  // namespace llm_sandbox
