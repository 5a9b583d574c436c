#include "mcp/client_session.h"

#include <utility>

namespace llm_sandbox::mcp {

bool Call::finish() { return close(); }

void Call::cancel() {
  if (close()) stop_.request_stop();
}

void Call::while_open(const std::function<void()>& action) {
  const std::lock_guard lock(mutex_);
  if (open_) action();
}

bool Call::close() {
  const std::lock_guard lock(mutex_);
  return std::exchange(open_, false);
}

std::optional<Revision> ClientSession::negotiated() const {
  const std::lock_guard lock(mutex_);
  return negotiated_;
}

void ClientSession::negotiate(Revision revision) {
  const std::lock_guard lock(mutex_);
  negotiated_ = revision;
}

std::shared_ptr<Call> ClientSession::begin(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = calls_.try_emplace(id);
  if (!is_new) return nullptr;
  entry->second = std::make_shared<Call>(id);
  return entry->second;
}

void ClientSession::end(const Call& call) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(call.id());
    // After a cancel the id may have been used anew.
    if (found != calls_.end() && found->second.get() == &call) calls_.erase(found);
  }
  tell_if_idle();
}

void ClientSession::cancel(const std::string& id) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    call = std::move(found->second);
    calls_.erase(found);
  }
  call->cancel();
  tell_if_idle();
}

void ClientSession::cancel_all() {
  std::map<std::string, std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (const auto& [id, call] : calls) call->cancel();
  tell_if_idle();
}

bool ClientSession::idle() const {
  const std::lock_guard lock(mutex_);
  return calls_.empty();
}

void ClientSession::tell_if_idle() {
  if (on_idle_ && idle()) on_idle_();
}

}  // namespace llm_sandbox::mcp
