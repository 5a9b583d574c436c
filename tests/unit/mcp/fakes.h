#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mcp/connection.h"
#include "mcp/server.h"
#include "mcp/tool.h"

namespace llm_sandbox::mcp {

constexpr std::chrono::seconds kTestPatience{20};  ///< a test that waits longer has failed

/// A client's end, kept in memory.
class FakeOutbox : public Outbox {
 public:
  void send(std::string message, Delivery delivery) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(message);
    deliveries_.push_back(delivery);
    arrived_.notify_all();
  }

  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

  /// All messages, once there are at least `count`.
  std::vector<nlohmann::json> wait(size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, kTestPatience, [&] { return lines_.size() >= count; });
    std::vector<nlohmann::json> messages;
    for (const auto& line : lines_) messages.push_back(nlohmann::json::parse(line));
    return messages;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> lines_;
  std::vector<Delivery> deliveries_;
};

/// A tool whose call is a function of the test.
class FakeTool : public Tool {
 public:
  using Function = std::function<ToolResult(const Json&, const ToolContext&)>;
  FakeTool(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}

  std::string_view name() const override { return name_; }
  ToolDescription describe() const override {
    return {name_, "Title of " + name_, "Fake", R"({"type":"object"})", R"({"type":"object"})", false, true};
  }
  ToolResult call(const Json& arguments, const ToolContext& context) const override {
    return function_(arguments, context);
  }

 private:
  std::string name_;
  Function function_;
};

inline ToolResult text_result(std::string text) { return {{TextContent{std::move(text)}}, R"({"a":1})", false}; }

/// Work on threads of its own, joined at the end; or nothing at all when `full`.
class FakeWorkers {
 public:
  ~FakeWorkers() {
    for (auto& thread : threads_) thread.join();
  }
  Post post() {
    return [this](std::function<void()> task) {
      if (full) return false;
      threads_.emplace_back(std::move(task));
      return true;
    };
  }
  bool full = false;

 private:
  std::vector<std::thread> threads_;
};

/// Waits for the stop of a call; whether it came in time.
inline bool wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  return !wake.wait_for(lock, stop, kTestPatience, [] { return false; }) && stop.stop_requested();
}

}  // namespace llm_sandbox::mcp
