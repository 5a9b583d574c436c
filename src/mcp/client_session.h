#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "mcp/protocol.h"

namespace llm_sandbox::mcp {

/// One request in flight. It is open until it is answered or cancelled, whichever comes first; nothing is sent for it
/// afterwards. Thread-safe.
class Call {
 public:
  explicit Call(std::string id) : id_(std::move(id)) {}

  /// The id as JSON, as it will be echoed.
  const std::string& id() const { return id_; }
  std::stop_token stop_token() const { return stop_.get_token(); }

  /// Claims the right to answer: true once, and only if nobody cancelled. Progress is sent before that or never.
  bool finish();
  /// Ends the call without an answer and asks the work to stop.
  void cancel();
  /// Runs `action` if the call is open, and keeps it open meanwhile. `action` must not wait.
  void while_open(const std::function<void()>& action);

 private:
  bool close();

  const std::string id_;
  std::stop_source stop_;
  std::mutex mutex_;
  bool open_ = true;
};

/// What the server remembers of one client: a pipe, or later an HTTP session. Thread-safe.
class ClientSession {
 public:
  /// `on_idle` is told, from any thread, each time that the session becomes idle; it must not wait.
  explicit ClientSession(std::function<void()> on_idle = {}) : on_idle_(std::move(on_idle)) {}

  /// Empty before `initialize`.
  std::optional<Revision> negotiated() const;
  void negotiate(Revision revision);
  /// The negotiated revision, or the newest: requests before `initialize` are served leniently.
  Revision revision() const { return negotiated().value_or(kNewestRevision); }

  /// Null when a call with that id is in flight. Each call begun must be settled once.
  std::shared_ptr<Call> begin(const std::string& id);
  /// Makes the call's id free again; before its answer is sent, because the client may use the id anew at once.
  void release_id(const Call& call);
  /// A call will send nothing more.
  void settle();
  /// Unknown ids are ignored.
  void cancel(const std::string& id);
  void cancel_all();
  /// Whether every call is settled.
  bool idle() const;

 private:
  const std::function<void()> on_idle_;
  mutable std::mutex mutex_;  ///< guards all below
  std::optional<Revision> negotiated_;
  std::map<std::string, std::shared_ptr<Call>> calls_;
  size_t unsettled_ = 0;
};

}  // namespace llm_sandbox::mcp
