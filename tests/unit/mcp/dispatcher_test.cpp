#include "mcp/dispatcher.h"

#include <doctest/doctest.h>

#include <future>
#include <stdexcept>

#include "fakes.h"

using namespace llm_sandbox;
using namespace llm_sandbox::mcp;
using nlohmann::json;

namespace {

/// A whole server over fake tools, and one client of it.
struct Fixture {
  FakeWorkers workers;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::promise<std::stop_token> started;
  Server server{"1.2.3", make_tools(), make_resources(), workers.post()};
  std::shared_ptr<ClientSession> session = std::make_shared<ClientSession>();
  std::shared_ptr<FakeOutbox> outbox = std::make_shared<FakeOutbox>();

  ~Fixture() { session->cancel_all(); }

  std::vector<std::unique_ptr<Tool>> make_tools() {
    std::vector<std::unique_ptr<Tool>> tools;
    const auto add = [&](const char* name, FakeTool::Function function) {
      tools.push_back(std::make_unique<FakeTool>(name, std::move(function)));
    };
    add("echo", [](const Json& arguments, const ToolContext&) { return text_result(arguments.dump()); });
    add("throw", [](const Json&, const ToolContext&) -> ToolResult { throw std::runtime_error("broken\xFF"); });
    add("block", [this](const Json&, const ToolContext& context) {
      started.set_value(context.stop);
      wait_for_stop(context.stop);
      return text_result("too late");
    });
    add("wait", [this](const Json&, const ToolContext&) {
      released.wait_for(kTestPatience);
      return text_result("released");
    });
    add("talk", [](const Json&, const ToolContext& context) {
      if (!context.report_progress) return text_result("silent");
      for (int i = 0; i < 1000; ++i) context.report_progress("line " + std::to_string(i) + "\n\xFF");
      return text_result("done");
    });
    return tools;
  }

  static std::vector<Resource> make_resources() {
    return {{"sandbox://languages", "language_details", "Title", "All", "application/json", [] { return "{}"; }},
            {"sandbox://broken", "broken", "Title", "Throws", "text/plain",
             []() -> std::string { throw std::runtime_error("no"); }}};
  }

  void send(const std::string& line) { server.dispatcher().handle(session, outbox, line); }

  void initialize(const std::string& revision) {
    send(R"({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":")" + revision +
         R"(","capabilities":{},"clientInfo":{"name":"test","version":"1"}}})");
    outbox->wait(1);
    outbox = std::make_shared<FakeOutbox>();
  }

  /// The answer to a line that has exactly one.
  json answer(const std::string& line) {
    outbox = std::make_shared<FakeOutbox>();
    send(line);
    const auto messages = outbox->wait(1);
    REQUIRE(messages.size() == 1);
    return messages[0];
  }

  void check_error(const std::string& line, int code, const json& id) {
    CAPTURE(line);
    const json message = answer(line);
    CHECK(message["error"]["code"] == code);
    CHECK(message["error"]["message"].is_string());
    CHECK(message["jsonrpc"] == "2.0");
    CHECK(message["id"] == id);
    CHECK_FALSE(message.contains("result"));
  }

  void check_silent(const std::string& line) {
    CAPTURE(line);
    outbox = std::make_shared<FakeOutbox>();
    send(line);
    CHECK(outbox->lines().empty());
  }
};

std::string call(const std::string& id, const std::string& tool, const std::string& more = "") {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":{"name":")" + tool + "\"" + more + "}}";
}

std::string ping(const std::string& id) { return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})"; }

}  // namespace

TEST_CASE("each way in which a message can be wrong has its code") {
  Fixture f;
  f.initialize("2025-06-18");
  f.check_error("{", -32700, nullptr);
  f.check_error("\xFF", -32700, nullptr);
  f.check_error(std::string(100'000, '['), -32700, nullptr);
  f.check_error("7", -32600, nullptr);
  f.check_error("{}", -32600, nullptr);
  f.check_error(R"({"jsonrpc":"2.0","method":7})", -32600, nullptr);
  f.check_error(R"({"id":1,"method":"ping"})", -32600, 1);
  f.check_error(R"({"jsonrpc":"1.0","id":1,"method":"ping"})", -32600, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":7})", -32600, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1})", -32600, 1);
  for (const char* id : {"null", "true", "1.5", "1.0", "{}", "[]", "1e400", "99999999999999999999"}) {
    CAPTURE(id);
    const json message = f.answer(ping(id));
    CHECK(message["id"] == nullptr);
    const bool refused = message["error"]["code"] == -32600 || message["error"]["code"] == -32700;
    CHECK(refused);
  }
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"no/such"})", -32601, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"prompts/list"})", -32601, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}})", -32601, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})", -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})", -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}})", -32602, 1);
  f.check_error(call("1", "no_such_tool"), -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})", -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"x"}})", -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})", -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}})", -32602, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://y"}})", -32002, 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sandbox://broken"}})", -32603, 1);
  f.check_error(call("1", "throw"), -32603, 1);
  CHECK(f.answer(ping("1"))["result"] == json::object());
}

TEST_CASE("an unknown id is null before 2025-11-25 and before the handshake, and left out from then on") {
  Fixture f;
  CHECK(f.answer("{").contains("id"));
  f.initialize("2024-11-05");
  CHECK(f.answer("{")["id"] == nullptr);
  f.initialize("2025-11-25");
  CHECK_FALSE(f.answer("{").contains("id"));
  CHECK_FALSE(f.answer(ping("null")).contains("id"));
}

TEST_CASE("ids come back as they were sent") {
  Fixture f;
  for (const char* id : {"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "\"\"",
                         "\"1\"", "\"a b \\u00e9 \\n \\\"\""}) {
    CAPTURE(id);
    CHECK(f.answer(ping(id))["id"] == json::parse(id));
  }
}

TEST_CASE("notifications and responses are never answered") {
  Fixture f;
  f.check_silent(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  f.check_silent(R"({"jsonrpc":"2.0","method":"no/such"})");
  f.check_silent(R"({"jsonrpc":"2.0","method":"ping"})");
  f.check_silent(R"({"jsonrpc":"2.0","method":"tools/call","params":[]})");
  f.check_silent(R"({"jsonrpc":"2.0","id":1,"result":{}})");
  f.check_silent(R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}})");
  for (const char* params : {"", R"(,"params":{})", R"(,"params":{"requestId":99})", R"(,"params":{"requestId":null})",
                             R"(,"params":{"requestId":{}})", R"(,"params":[1])"})
    f.check_silent(R"({"jsonrpc":"2.0","method":"notifications/cancelled")" + std::string(params) + "}");
}

TEST_CASE("initialize answers each revision in its own terms, and unknown ones with the newest") {
  for (const auto& [asked, answered] : {std::pair{"2024-11-05", "2024-11-05"},
                                        {"2025-03-26", "2025-03-26"},
                                        {"2025-06-18", "2025-06-18"},
                                        {"2025-11-25", "2025-11-25"},
                                        {"1999-01-01", "2025-11-25"},
                                        {"2026-07-28", "2025-11-25"},
                                        {"", "2025-11-25"}}) {
    CAPTURE(asked);
    Fixture f;
    const json result = f.answer(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":")" +
                                 std::string(asked) + R"("}})")["result"];
    CHECK(result["protocolVersion"] == answered);
    CHECK(result["serverInfo"]["name"] == "llm-sandbox");
    CHECK(result["serverInfo"]["version"] == "1.2.3");
    CHECK(result["serverInfo"].contains("title") == (std::string(answered) >= "2025-06-18"));
    CHECK(result["capabilities"].contains("tools"));
    CHECK_FALSE(result["capabilities"].contains("prompts"));
    CHECK(result["instructions"].is_string());
  }
}

TEST_CASE("tools are described and answered in the terms of the revision") {
  for (const std::string revision : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    CAPTURE(revision);
    Fixture f;
    f.initialize(revision);
    const json tools = f.answer(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}})")["result"]["tools"];
    REQUIRE(tools.size() == 5);
    CHECK(tools[0]["name"] == "echo");
    CHECK(tools[0]["inputSchema"]["type"] == "object");
    CHECK(tools[0].contains("annotations") == (revision >= "2025-03-26"));
    CHECK(tools[0].contains("title") == (revision >= "2025-06-18"));
    CHECK(tools[0].contains("outputSchema") == (revision >= "2025-06-18"));
    const json result = f.answer(call("1", "echo", R"(,"arguments":{"x":[1]})"))["result"];
    CHECK(result["content"] == json::parse(R"([{"type":"text","text":"{\"x\":[1]}"}])"));
    CHECK(result["isError"] == false);
    CHECK(result.contains("structuredContent") == (revision >= "2025-06-18"));
  }
}

TEST_CASE("missing and odd arguments reach the tool, which judges them") {
  Fixture f;
  const auto echoed = [&](const std::string& more) {
    return f.answer(call("1", "echo", more))["result"]["content"][0]["text"];
  };
  CHECK(echoed("") == "null");
  CHECK(echoed(R"(,"arguments":null)") == "null");
  CHECK(echoed(R"(,"arguments":[1])") == "[1]");
}

TEST_CASE("resources") {
  Fixture f;
  const json list = f.answer(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})")["result"];
  CHECK(list["resources"][0]["uri"] == "sandbox://languages");
  const json read = f.answer(
      R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sandbox://languages"}})")["result"];
  CHECK(read ==
        json::parse(R"({"contents":[{"uri":"sandbox://languages","mimeType":"application/json","text":"{}"}]})"));
  CHECK(f.answer(R"({"jsonrpc":"2.0","id":1,"method":"resources/templates/list"})")["result"] ==
        json::parse(R"({"resourceTemplates":[]})"));
}

TEST_CASE("batches are served in 2025-03-26 and refused elsewhere") {
  const std::string two = "[" + ping("1") + "," + ping("2") + "]";
  for (const char* revision : {"2024-11-05", "2025-06-18", "2025-11-25"}) {
    Fixture f;
    f.initialize(revision);
    CHECK(f.answer(two)["error"]["code"] == -32600);
  }
  Fixture f;
  CHECK(f.answer(two)["error"]["code"] == -32600);  // before the handshake
  f.initialize("2025-03-26");
  CHECK(f.answer(two).size() == 2);
  f.check_error("[]", -32600, nullptr);
  CHECK(f.answer("[1,2]").size() == 2);
  CHECK(f.answer("[1]")[0]["error"]["code"] == -32600);
  f.check_silent(R"([{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}])");
  const json mixed =
      f.answer("[" + ping("1") + R"(,{"jsonrpc":"2.0","method":"a"},)" + call("2", "echo") + "," + call("3", "throw") +
               R"(,{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}])");
  REQUIRE(mixed.size() == 4);
  std::map<int, json> by_id;
  for (const auto& message : mixed) by_id[message["id"].get<int>()] = message;
  CHECK(by_id[1].contains("result"));
  CHECK(by_id[2].contains("result"));
  CHECK(by_id[3]["error"]["code"] == -32603);
  CHECK(by_id[4]["error"]["code"] == -32600);
  std::string many = "[" + ping("0");
  for (size_t i = 1; i <= kMaxBatch; ++i) many += "," + ping(std::to_string(i));
  f.check_error(many + "]", -32600, nullptr);
}

TEST_CASE("a cancelled call is stopped and not answered, also in a batch") {
  for (const bool batch : {false, true}) {
    Fixture f;
    f.initialize("2025-03-26");
    f.send(batch ? "[" + call("\"x\"", "block") + "," + ping("2") + "]" : call("\"x\"", "block"));
    const std::stop_token stop = f.started.get_future().get();
    CHECK_FALSE(stop.stop_requested());
    f.send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}})");
    CHECK_FALSE(stop.stop_requested());
    f.send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}})");
    CHECK(stop.stop_requested());
    if (batch) {
      const json answers = f.outbox->wait(1)[0];
      REQUIRE(answers.size() == 1);
      CHECK(answers[0]["id"] == 2);
    }
    f.send(ping("3"));
    CHECK(f.outbox->wait(1).size() == (batch ? 2 : 1));
  }
}

TEST_CASE("the second of two requests with one id is refused and the first lives on") {
  Fixture f;
  f.send(call("1", "wait"));
  f.send(ping("\"1\""));  // another id
  f.send(ping("1"));
  const auto messages = f.outbox->wait(2);
  CHECK(messages[0]["id"] == "1");
  CHECK(messages[1]["error"]["code"] == -32600);
  f.release.set_value();
  const auto all = f.outbox->wait(3);
  CHECK(all[2]["result"]["content"][0]["text"] == "released");
  CHECK(f.answer(ping("1"))["result"] == json::object());
}

TEST_CASE("when no worker is free the call is answered at once") {
  Fixture f;
  f.workers.full = true;
  const json result = f.answer(call("1", "echo"))["result"];
  CHECK(result["isError"] == true);
  const json text = json::parse(result["content"][0]["text"].get<std::string>());
  CHECK(text["reason"] == "backend_unavailable");
  CHECK(text["exit_code"] == 1);
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sandbox://languages"}})", -32603,
                1);
}

TEST_CASE("progress: only with a token, increasing, bounded in rate and size, never after the answer") {
  Fixture f;
  f.initialize("2025-06-18");
  CHECK(f.answer(call("1", "talk"))["result"]["content"][0]["text"] == "silent");
  for (const char* token : {"0", "\"t\""}) {
    f.outbox = std::make_shared<FakeOutbox>();
    f.send(call("1", "talk", R"(,"_meta":{"progressToken":)" + std::string(token) + "}"));
    while (!f.session->idle()) std::this_thread::yield();
    const auto messages = f.outbox->wait(2);
    CHECK(messages.size() >= 2);
    CHECK(messages.size() < 100);
    CHECK(messages.back()["id"] == 1);
    double last = 0;
    for (size_t i = 0; i + 1 < messages.size(); ++i) {
      CHECK(messages[i]["method"] == "notifications/progress");
      CHECK(messages[i]["params"]["progressToken"] == json::parse(token));
      CHECK(messages[i]["params"]["progress"].get<double>() > last);
      last = messages[i]["params"]["progress"].get<double>();
      CHECK(messages[i]["params"]["message"].get<std::string>().find('\n') == std::string::npos);
    }
  }
  f.initialize("2024-11-05");
  f.send(call("1", "talk", R"(,"_meta":{"progressToken":7})"));
  CHECK_FALSE(f.outbox->wait(2)[0]["params"].contains("message"));
}

TEST_CASE("messages of the era without a handshake are told apart one by one") {
  Fixture f;
  const std::string meta = R"("params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
  f.check_error(R"({"jsonrpc":"2.0","id":1,"method":"server/discover",)" + meta, -32601, 1);
  const json refused = f.answer(R"({"jsonrpc":"2.0","id":1,"method":"tools/list",)" + meta);
  CHECK(refused["error"]["code"] == -32022);
  CHECK(refused["error"]["data"]["requested"] == "2026-07-28");
  CHECK(refused["error"]["data"]["supported"] ==
        json::parse(R"(["2024-11-05","2025-03-26","2025-06-18","2025-11-25"])"));
  f.check_silent(R"({"jsonrpc":"2.0","method":"notifications/initialized",)" + meta);
  f.initialize("2025-11-25");
  CHECK(f.answer(ping("1")).contains("result"));
}

TEST_CASE("ReplyOnce yields exactly one answer, whatever happens") {
  const auto session = std::make_shared<ClientSession>();
  std::vector<std::optional<std::string>> answers;
  const auto make = [&] {
    return ReplyOnce(session, session->begin("1"),
                     [&](std::optional<std::string> answer) { answers.push_back(answer); });
  };
  SUBCASE("dropped") {
    { const ReplyOnce reply = make(); }
    REQUIRE(answers.size() == 1);
    CHECK(json::parse(*answers[0])["error"]["code"] == -32603);
  }
  SUBCASE("moved, then dropped") {
    {
      ReplyOnce first = make();
      const ReplyOnce second = std::move(first);
    }
    CHECK(answers.size() == 1);
  }
  SUBCASE("answered twice") {
    ReplyOnce reply = make();
    reply.result([](JsonWriter& writer) { writer.integer(1); });
    reply.error({RpcCode::kInternalError, "again"});
    REQUIRE(answers.size() == 1);
    CHECK(json::parse(*answers[0])["result"] == 1);
  }
  SUBCASE("cancelled before") {
    ReplyOnce reply = make();
    session->cancel_all();
    reply.result([](JsonWriter& writer) { writer.integer(1); });
    REQUIRE(answers.size() == 1);
    CHECK_FALSE(answers[0].has_value());
  }
  SUBCASE("cancelled after") {
    ReplyOnce reply = make();
    reply.result([](JsonWriter& writer) { writer.integer(1); });
    session->cancel("1");
    CHECK(answers[0].has_value());
  }
  CHECK(session->idle());
}
