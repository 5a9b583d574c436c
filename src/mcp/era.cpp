#include "mcp/era.h"

#include <nlohmann/json.hpp>

#include "mcp/arguments.h"
#include "mcp/json_writer.h"
#include "mcp/protocol.h"

namespace llm_sandbox::mcp {
namespace {

constexpr size_t kMaxEchoedRevision = 64;

}  // namespace

std::optional<std::string> claimed_revision(const Json& params) {
  const Json* meta = find_argument(params, "_meta");
  if (meta == nullptr || !meta->is_object()) return std::nullopt;
  const auto claim = meta->find("io.modelcontextprotocol/protocolVersion");
  if (claim == meta->end()) return std::nullopt;
  return claim->is_string() ? claim->get<std::string>() : std::string();
}

RpcFailure refuse_modern_request(const std::string& method, const std::string& claimed) {
  if (method == "server/discover") return {RpcCode::kMethodNotFound, "unknown method: server/discover"};
  RpcFailure failure{RpcCode::kUnsupportedProtocolVersion,
                     "this server speaks the revisions with a handshake: send initialize first"};
  JsonWriter writer(failure.data);
  writer.begin_object().key("supported").begin_array();
  for (const Revision revision : kRevisions) writer.string(revision_name(revision));
  writer.end_array().key("requested").string(claimed.substr(0, kMaxEchoedRevision)).end_object();
  return failure;
}

}  // namespace llm_sandbox::mcp
