#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "mcp/client_session.h"
#include "mcp/connection.h"
#include "mcp/json.h"
#include "mcp/progress.h"
#include "mcp/reply.h"

namespace llm_sandbox::mcp {

constexpr size_t kMaxBatch = 100;  ///< messages

/// What a handler may know of a request besides its params.
struct Request {
  std::shared_ptr<ClientSession> session;
  Revision revision = kNewestRevision;
  bool in_batch = false;
  std::stop_token stop;
  std::function<void(std::string_view)> report_progress;  ///< empty when the client gave no token
};

/// Takes JSON-RPC messages apart and gives each to the handler of its method. Everything that is wrong with a message
/// as such is answered here; what a method means is the handlers' affair. Bind all methods first; then handle() may be
/// called from several threads at once (for one session from one at a time, so that its messages keep their order).
/// Must outlive the work that its handlers start.
class Dispatcher {
 public:
  /// `Params` has `static Result<Params> parse(Json& params)`, where `params` is an object or null; its failure becomes
  /// -32602. `handler(Params, Request, ReplyOnce)` must not wait: longer work goes to a worker together with the reply.
  template <typename Params, typename Handler>
  void on_request(std::string method, Handler handler) {
    requests_[std::move(method)] = [handler = std::move(handler)](Json& params, Request request, ReplyOnce reply) {
      Result<Params> decoded = Params::parse(params);
      if (!decoded) return reply.error({RpcCode::kInvalidParams, decoded.error().text()});
      handler(std::move(*decoded), std::move(request), std::move(reply));
    };
  }

  /// `handler(Params, ClientSession&)`; params that do not parse are ignored, as nobody can be told.
  template <typename Params, typename Handler>
  void on_notification(std::string method, Handler handler) {
    notifications_[std::move(method)] = [handler = std::move(handler)](Json& params, ClientSession& session) {
      Result<Params> decoded = Params::parse(params);
      if (decoded) handler(std::move(*decoded), session);
    };
  }

  /// One message, or a batch. Never throws; answers go to the outbox, now or later.
  void handle(const std::shared_ptr<ClientSession>& session, const std::shared_ptr<Outbox>& outbox,
              std::string_view text);

  /// Answers a message that could not even be read.
  static void refuse(const ClientSession& session, Outbox& outbox, const RpcFailure& failure);

 private:
  struct Origin;
  class Batch;

  void handle_batch(Origin& origin, Json& messages);
  void handle_message(Origin& origin, Json& message, const AnswerSink& sink);
  void handle_request(Origin& origin, const std::string& id, const std::string& method, Json& params,
                      const AnswerSink& sink);
  void handle_notification(Origin& origin, const std::string& method, Json& params);

  std::unordered_map<std::string, std::function<void(Json&, Request, ReplyOnce)>> requests_;
  std::unordered_map<std::string, std::function<void(Json&, ClientSession&)>> notifications_;
  ProgressPacer pacer_;
};

/// An id as JSON: strings, and integers that fit 64 bits; nullopt for all else.
std::optional<std::string> request_id(const Json& value);

}  // namespace llm_sandbox::mcp
