#include "mcp/progress.h"

#include <algorithm>

#include "base/text.h"
#include "mcp/json_writer.h"

namespace llm_sandbox::mcp {
namespace {

bool continues_character(char c) { return (c & 0xC0) == 0x80; }

/// Cut at the bound, between characters.
std::string_view bounded(std::string_view text) {
  if (text.size() <= kMaxProgressMessage) return text;
  size_t end = kMaxProgressMessage;
  while (end > 0 && continues_character(text[end])) --end;
  return text.substr(0, end);
}

std::string one_line(std::string_view message) {
  // Cut first, because a program's line may be a mebibyte long, and again, because U+FFFD is longer than what it
  // replaces.
  std::string line = sanitize_utf8(bounded(message));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return std::string(trim(bounded(line)));
}

}  // namespace

ProgressReporter::ProgressReporter(std::shared_ptr<Call> call, std::shared_ptr<Outbox> outbox, std::string token,
                                   Revision revision, ProgressPacer& pacer)
    : call_(std::move(call)),
      outbox_(std::move(outbox)),
      token_(std::move(token)),
      revision_(revision),
      pacer_(pacer) {}

void ProgressReporter::report(std::string_view message) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now >= next_allowed_ && !waiting_) {
    next_allowed_ = now + kProgressInterval;
    send(message);
    return;
  }
  const bool is_scheduled = waiting_.has_value();
  waiting_ = one_line(message);
  if (!is_scheduled) pacer_.flush_at(next_allowed_, weak_from_this());
}

void ProgressReporter::flush() {
  const std::lock_guard lock(mutex_);
  if (!waiting_) return;
  next_allowed_ = Clock::now() + kProgressInterval;
  send(*waiting_);
  waiting_.reset();
}

void ProgressReporter::send(std::string_view message) {
  std::string notification;
  JsonWriter writer(notification);
  writer.begin_object().key("jsonrpc").string("2.0").key("method").string("notifications/progress");
  writer.key("params").begin_object().key("progressToken").raw(token_).key("progress").integer(++value_);
  if (has_progress_message(revision_)) writer.key("message").string(one_line(message));
  writer.end_object().end_object();
  call_->while_open([&] { outbox_->send(std::move(notification), Delivery::kExpendable); });
}

ProgressPacer::~ProgressPacer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressPacer::flush_at(Clock::time_point when, std::weak_ptr<ProgressReporter> reporter) {
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  due_.emplace_back(when, std::move(reporter));
  wake_.notify_all();
}

void ProgressPacer::work() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (due_.empty()) {
      wake_.wait(lock);
      continue;
    }
    // All wait about the same time, so that the order of arrival is as good as the order of their times.
    const auto [when, reporter] = due_.front();
    if (Clock::now() < when) {
      wake_.wait_until(lock, when);
      continue;
    }
    due_.pop_front();
    lock.unlock();
    if (const auto alive = reporter.lock()) alive->flush();
    lock.lock();
  }
}

}  // namespace llm_sandbox::mcp
