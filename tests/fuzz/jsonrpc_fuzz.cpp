#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mcp/arguments.h"
#include "mcp/server.h"

// Feeds lines to a whole server over a fake tool. Every answer must be one line of JSON that has an id or an error, and
// no input may leave a call unsettled.

namespace {

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;

struct EchoArguments {
  std::string text;
  std::string optional;
  std::vector<std::string> list;
  std::chrono::milliseconds time{};
};

/// Has an argument of each kind; answers with what it understood.
class FakeTool final : public Tool {
 public:
  FakeTool() {
    arguments_.add(TextArgument{"text", "", 100}, &EchoArguments::text)
        .add(TextArgument{"optional", "", 100, "x"}, &EchoArguments::optional)
        .add(TextListArgument{"list", "", 10, 10}, &EchoArguments::list)
        .add(SecondsArgument{"time", "", std::chrono::seconds(1)}, &EchoArguments::time);
  }
  std::string_view name() const override { return "fake"; }
  ToolDescription describe() const override {
    return {"fake", "Fake", "", arguments_.schema(), arguments_.schema(), false, false};
  }
  ToolResult call(const Json& arguments, const ToolContext& context) const override {
    auto decoded = arguments_.decode(arguments);
    if (!decoded.problems.empty()) return refuse(Reason::kInvalidArgument, decoded.problems.front());
    if (context.report_progress) context.report_progress(decoded.value.text);
    return {{TextContent{decoded.value.text}, ImageContent{decoded.value.optional, "image/png"}}, "{}", false};
  }

 private:
  ArgumentTable<EchoArguments> arguments_;
};

class CheckingOutbox final : public Outbox {
 public:
  void send(std::string message, Delivery) override {
    if (message.find('\n') != std::string::npos) __builtin_trap();
    const auto parsed = nlohmann::json::parse(message, nullptr, false);
    if (parsed.is_discarded()) __builtin_trap();
    for (const auto& one : parsed.is_array() ? parsed : nlohmann::json::array({parsed})) {
      if (!one.contains("id") && !one.contains("error") && !one.contains("method")) __builtin_trap();
    }
  }
};

Server& server() {
  static Server* const instance = [] {
    std::vector<std::unique_ptr<Tool>> tools;
    tools.push_back(std::make_unique<FakeTool>());
    return new Server("0", std::move(tools),
                      {{"sandbox://fake", "fake", "Fake", "", "text/plain", [] { return std::string("fake"); }}},
                      [](const std::function<void()>& task) {
                        task();
                        return true;
                      });
  }();
  return *instance;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto session = std::make_shared<ClientSession>();
  const auto outbox = std::make_shared<CheckingOutbox>();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    server().dispatcher().handle(session, outbox, rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (!session->idle()) __builtin_trap();
  return 0;
}
