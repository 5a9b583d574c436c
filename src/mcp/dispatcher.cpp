#include "mcp/dispatcher.h"

#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "mcp/arguments.h"
#include "mcp/era.h"

namespace llm_sandbox::mcp {
namespace {

constexpr size_t kMaxEchoedName = 100;

const Json* find_member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

RpcFailure invalid_request(std::string message) { return {RpcCode::kInvalidRequest, std::move(message)}; }

/// What is wrong with the envelope of a request or notification, in the order of its members; nullopt if nothing is.
std::optional<RpcFailure> check_envelope(const Json& message) {
  const Json* version = find_member(message, "jsonrpc");
  if (version == nullptr || *version != "2.0") return invalid_request("\"jsonrpc\" must be \"2.0\"");
  const Json* id = find_member(message, "id");
  if (id != nullptr && !request_id(*id)) return invalid_request("\"id\" must be a string or an integer");
  const Json* method = find_member(message, "method");
  if (method == nullptr || !method->is_string()) return invalid_request("\"method\" must be a string");
  return std::nullopt;
}

bool is_response(const Json& message) {
  return !message.contains("method") && (message.contains("result") || message.contains("error"));
}

std::optional<std::string> progress_token(const Json& params) {
  const Json* meta = find_argument(params, "_meta");
  const Json* token = meta == nullptr ? nullptr : find_argument(*meta, "progressToken");
  return token == nullptr ? std::nullopt : request_id(*token);
}

}  // namespace

/// Where a message came from and where its answers go.
struct Dispatcher::Origin {
  std::shared_ptr<ClientSession> session;
  std::shared_ptr<Outbox> outbox;
  bool in_batch = false;

  std::string error(const std::optional<std::string>& id, const RpcFailure& failure) const {
    return error_message(id, failure, session->revision(), !session->negotiated());
  }
};

/// Gathers the answers to one batch and sends them when the last has come. Thread-safe.
class Dispatcher::Batch {
 public:
  Batch(std::shared_ptr<Outbox> outbox, size_t open) : outbox_(std::move(outbox)), open_(open) {}

  void add(std::optional<std::string> answer) {
    std::unique_lock lock(mutex_);
    if (answer) answers_ += (answers_.empty() ? "[" : ",") + *answer;
    if (--open_ > 0 || answers_.empty()) return;
    std::string message = std::move(answers_) + "]";
    lock.unlock();
    outbox_->send(std::move(message), Delivery::kReliable);
  }

 private:
  const std::shared_ptr<Outbox> outbox_;
  std::mutex mutex_;
  size_t open_;
  std::string answers_;
};

std::optional<std::string> request_id(const Json& value) {
  if (value.is_string()) return json_string(value.get_ref<const std::string&>());
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  return std::nullopt;
}

void Dispatcher::handle(const std::shared_ptr<ClientSession>& session, const std::shared_ptr<Outbox>& outbox,
                        std::string_view text) {
  Origin origin{session, outbox};
  Result<Json> message = parse_json(text);
  if (!message) return refuse(*session, *outbox, {RpcCode::kParseError, message.error().sentence});
  if (message->is_array()) return handle_batch(origin, *message);
  handle_message(origin, *message, [outbox](std::optional<std::string> answer) {
    if (answer) outbox->send(std::move(*answer), Delivery::kReliable);
  });
}

void Dispatcher::refuse(const ClientSession& session, Outbox& outbox, const RpcFailure& failure) {
  outbox.send(error_message(std::nullopt, failure, session.revision(), !session.negotiated()), Delivery::kReliable);
}

void Dispatcher::handle_batch(Origin& origin, Json& messages) {
  const auto refuse_all = [&](std::string why) {
    refuse(*origin.session, *origin.outbox, invalid_request(std::move(why)));
  };
  const auto negotiated = origin.session->negotiated();
  if (!negotiated || !has_batches(*negotiated)) return refuse_all("batches exist only in revision 2025-03-26");
  if (messages.empty()) return refuse_all("the batch is empty");
  if (messages.size() > kMaxBatch) {
    return refuse_all("a batch may hold " + std::to_string(kMaxBatch) + " messages at most");
  }

  origin.in_batch = true;
  const auto batch = std::make_shared<Batch>(origin.outbox, messages.size());
  for (Json& message : messages) {
    handle_message(origin, message, [batch](std::optional<std::string> answer) { batch->add(std::move(answer)); });
  }
}

void Dispatcher::handle_message(Origin& origin, Json& message, const AnswerSink& sink) {
  if (!message.is_object()) {
    return sink(origin.error(std::nullopt, invalid_request("a message must be an object")));
  }
  // This server asks its clients nothing, so that a response can only be a mistake or too late.
  if (is_response(message)) return sink(std::nullopt);

  const Json* id_member = find_member(message, "id");
  const std::optional<std::string> id = id_member == nullptr ? std::nullopt : request_id(*id_member);
  if (const auto failure = check_envelope(message)) return sink(origin.error(id, *failure));

  const std::string method = message["method"].get<std::string>();
  Json params = message.contains("params") ? std::move(message["params"]) : Json(nullptr);
  const bool has_bad_params = message.contains("params") && !params.is_object();
  if (!id) {
    if (!has_bad_params) handle_notification(origin, method, params);
    return sink(std::nullopt);
  }
  if (has_bad_params) {
    return sink(origin.error(id, {RpcCode::kInvalidParams, "\"params\" must be an object"}));
  }
  handle_request(origin, *id, method, params, sink);
}

void Dispatcher::handle_request(Origin& origin, const std::string& id, const std::string& method, Json& params,
                                const AnswerSink& sink) {
  const std::shared_ptr<Call> call = origin.session->begin(id);
  if (!call) return sink(origin.error(id, invalid_request("a request with this id is still being served")));

  ReplyOnce reply(origin.session, call, sink);
  if (const auto claimed = claimed_revision(params)) return reply.error(refuse_modern_request(method, *claimed));
  const auto handler = requests_.find(method);
  if (handler == requests_.end()) {
    return reply.error({RpcCode::kMethodNotFound, "unknown method: " + method.substr(0, kMaxEchoedName)});
  }

  Request request{origin.session, origin.session->revision(), origin.in_batch, call->stop_token(), {}};
  if (const auto token = progress_token(params)) {
    const auto reporter = std::make_shared<ProgressReporter>(call, origin.outbox, *token, request.revision, pacer_);
    request.report_progress = [reporter](std::string_view message) { reporter->report(message); };
  }
  try {
    handler->second(params, std::move(request), std::move(reply));
  } catch (const std::exception&) {
    // The reply was dropped on the way out, which has answered the request.
  }
}

void Dispatcher::handle_notification(Origin& origin, const std::string& method, Json& params) {
  if (claimed_revision(params)) return;
  const auto handler = notifications_.find(method);
  if (handler != notifications_.end()) handler->second(params, *origin.session);
}

}  // namespace llm_sandbox::mcp
