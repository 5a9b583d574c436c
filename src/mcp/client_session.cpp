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
  ++unsettled_;
  return entry->second;
}

void ClientSession::release_id(const Call& call) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call.id());
  // After a cancel the id may have been used anew.
  if (found != calls_.end() && found->second.get() == &call) calls_.erase(found);
}

void ClientSession::settle() {
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    is_last = --unsettled_ == 0;
  }
  if (is_last && on_idle_) on_idle_();
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
}

void ClientSession::cancel_all() {
  std::map<std::string, std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (const auto& [id, call] : calls) call->cancel();
}

bool ClientSession::idle() const {
  const std::lock_guard lock(mutex_);
  return unsettled_ == 0;
}

}  // namespace llm_sandbox::mcp
