#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/client_session.h"
#include "mcp/json_writer.h"
#include "mcp/protocol.h"

namespace llm_sandbox::mcp {

/// A JSON-RPC error object in the making.
struct RpcFailure {
  RpcCode code = RpcCode::kInternalError;
  std::string message;
  std::string data = {};  ///< JSON; empty: none
};

/// A whole error message. `id` is JSON; nullopt where the request's id can't be read.
std::string error_message(const std::optional<std::string>& id, const RpcFailure& failure, Revision revision,
                          bool before_handshake);

/// Takes the answer to one request; nullopt when there is none because it was cancelled. Called exactly once.
using AnswerSink = std::function<void(std::optional<std::string>)>;

/// The one answer to a request. Whatever happens, the sink gets exactly one: the first that is given; nothing if the
/// client cancelled before; an internal error if the reply is dropped without an answer. Move-only, one thread at a
/// time.
class ReplyOnce {
 public:
  ReplyOnce(std::shared_ptr<ClientSession> session, std::shared_ptr<Call> call, AnswerSink sink)
      : session_(std::move(session)), call_(std::move(call)), sink_(std::move(sink)) {}
  ReplyOnce(ReplyOnce&& other) noexcept;
  ReplyOnce& operator=(ReplyOnce&&) = delete;
  ~ReplyOnce();

  /// `write` writes the value of "result".
  void result(const std::function<void(JsonWriter&)>& write);
  void error(const RpcFailure& failure);

 private:
  void answer(const std::function<std::string()>& make_message);

  std::shared_ptr<ClientSession> session_;
  std::shared_ptr<Call> call_;
  AnswerSink sink_;  ///< empty once used or moved from
};

}  // namespace llm_sandbox::mcp
