#pragma once

#include <optional>
#include <string>

#include "mcp/json.h"
#include "mcp/reply.h"

namespace llm_sandbox::mcp {

/// From revision 2026-07-28 on there is no handshake: each message names its revision in params._meta. Every message
/// is judged for itself, never the connection, so that a client may probe for the newer era and then initialize.
/// The revision that a message claims; nullopt for a message of the legacy era. `params` is an object or null.
std::optional<std::string> claimed_revision(const Json& params);

/// What this server, which has no such revision yet, answers to a request of that era. A client of both eras then
/// falls back to `initialize`: server/discover is an unknown method.
RpcFailure refuse_modern_request(const std::string& method, const std::string& claimed);

}  // namespace llm_sandbox::mcp
