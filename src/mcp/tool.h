#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "mcp/content.h"
#include "mcp/json.h"
#include "sandbox/request.h"

namespace llm_sandbox::mcp {

/// What `tools/list` tells of a tool, in the terms of no revision.
struct ToolDescription {
  std::string name;
  std::string title;
  std::string description;
  std::string input_schema;   ///< JSON Schema 2020-12
  std::string output_schema;  ///< of ToolResult::structured; empty when the tool has none
  bool read_only = false;     ///< changes nothing anywhere
  bool open_world = false;    ///< may reach a network
};

/// What belongs to a call but not to its arguments.
struct ToolContext {
  std::stop_token stop;
  std::function<void(std::string_view)> report_progress;  ///< any bytes; empty when the client wants no progress
};

/// A tool that clients can call. Knows neither the protocol's revisions nor the transport. All members may be called
/// from several threads at once.
class Tool {
 public:
  virtual ~Tool() = default;

  virtual std::string_view name() const = 0;
  /// Cheap: answers `tools/list` on the reading thread.
  virtual ToolDescription describe() const = 0;
  /// `arguments` is what the client sent, of any JSON type; null when it sent none.
  virtual ToolResult call(const Json& arguments, const ToolContext& context) const = 0;
  /// The answer to a call that could not be made.
  virtual ToolResult refuse(Reason reason, const std::string& sentence) const;
};

/// The text block of CONTRACT for a call that ran nothing: exit code 1, the sentence as stderr, the reason.
std::string refusal_text(Reason reason, const std::string& sentence);

}  // namespace llm_sandbox::mcp
