#include "mcp/reply.h"

#include <utility>

namespace llm_sandbox::mcp {

std::string error_message(const std::optional<std::string>& id, const RpcFailure& failure, Revision revision,
                          bool before_handshake) {
  std::string message;
  JsonWriter writer(message);
  writer.begin_object().key("jsonrpc").string("2.0");
  if (id) {
    writer.key("id").raw(*id);
  } else if (before_handshake || !omits_unknown_id(revision)) {
    writer.key("id").raw("null");
  }
  writer.key("error").begin_object().key("code").integer(static_cast<int>(failure.code));
  writer.key("message").string(failure.message);
  if (!failure.data.empty()) writer.key("data").raw(failure.data);
  writer.end_object().end_object();
  return message;
}

ReplyOnce::ReplyOnce(ReplyOnce&& other) noexcept
    : session_(std::move(other.session_)), call_(std::move(other.call_)), sink_(std::exchange(other.sink_, nullptr)) {}

ReplyOnce::~ReplyOnce() {
  if (sink_) error({RpcCode::kInternalError, "the server dropped the request without an answer"});
}

void ReplyOnce::result(const std::function<void(JsonWriter&)>& write) {
  answer([&] {
    std::string message;
    JsonWriter writer(message);
    writer.begin_object().key("jsonrpc").string("2.0").key("id").raw(call_->id()).key("result");
    write(writer);
    writer.end_object();
    return message;
  });
}

void ReplyOnce::error(const RpcFailure& failure) {
  answer([&] { return error_message(call_->id(), failure, session_->revision(), false); });
}

void ReplyOnce::answer(const std::function<std::string()>& make_message) {
  if (!sink_) return;
  // Made before the call is claimed: should that throw, the reply can still say so.
  std::string message = make_message();
  const AnswerSink sink = std::exchange(sink_, nullptr);
  const bool is_open = call_->finish();
  session_->release_id(*call_);
  sink(is_open ? std::optional(std::move(message)) : std::nullopt);
  session_->settle();
}

}  // namespace llm_sandbox::mcp
