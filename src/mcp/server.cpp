#include "mcp/server.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "mcp/arguments.h"
#include "mcp/content.h"

namespace llm_sandbox::mcp {
namespace {

constexpr std::string_view kInstructions =
    "Runs programs in a sandbox. Call execute_code with the whole program: calls share no files, variables or "
    "processes. Print what you want to see; plots and image files come back as images. "
    "get_language_details tells which version and libraries of a language are installed.";

constexpr size_t kMaxEchoedName = 200;
constexpr const char* kBusy = "The server is busy: too many calls are waiting. Try again in a moment.";

/// The string member of that name; else the failure says what it must be.
Result<std::string> required_string(const Json& params, const std::string& name) {
  const Json* value = find_argument(params, name);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  return fail(ErrorCode::kInvalidArgument, "params." + name + " must be a string");
}

struct NoParams {
  static Result<NoParams> parse(Json&) { return NoParams{}; }
};

struct InitializeParams {
  std::string protocol_version;

  static Result<InitializeParams> parse(Json& params) {
    return required_string(params, "protocolVersion").map([](std::string version) {
      return InitializeParams{std::move(version)};
    });
  }
};

struct CancelledParams {
  std::string id;

  static Result<CancelledParams> parse(Json& params) {
    const Json* value = find_argument(params, "requestId");
    const auto id = value == nullptr ? std::nullopt : request_id(*value);
    if (!id) return fail(ErrorCode::kInvalidArgument, "params.requestId must be a string or an integer");
    return CancelledParams{*id};
  }
};

/// All lists fit one page, so that every cursor is one that this server never gave.
struct ListParams {
  static Result<ListParams> parse(Json& params) {
    if (find_argument(params, "cursor") == nullptr) return ListParams{};
    return fail(ErrorCode::kInvalidArgument, "params.cursor is not one that this server gave");
  }
};

struct CallToolParams {
  std::string name;
  Json arguments;

  static Result<CallToolParams> parse(Json& params) {
    Result<std::string> name = required_string(params, "name");
    if (!name) return fail(std::move(name.error()));
    Json arguments = params.contains("arguments") ? std::move(params["arguments"]) : Json(nullptr);
    return CallToolParams{std::move(*name), std::move(arguments)};
  }
};

struct ReadResourceParams {
  std::string uri;

  static Result<ReadResourceParams> parse(Json& params) {
    return required_string(params, "uri").map([](std::string value) { return ReadResourceParams{std::move(value)}; });
  }
};

void write_initialize_result(JsonWriter& writer, Revision revision, std::string_view version) {
  writer.begin_object().key("protocolVersion").string(revision_name(revision));
  writer.key("capabilities").raw(R"({"tools":{"listChanged":false},"resources":{}})");
  writer.key("serverInfo").begin_object().key("name").string("llm-sandbox");
  if (has_titles(revision)) writer.key("title").string("LLM Sandbox");
  writer.key("version").string(version).end_object();
  writer.key("instructions").string(kInstructions).end_object();
}

void write_annotations(JsonWriter& writer, const ToolDescription& tool) {
  writer.begin_object().key("title").string(tool.title);
  writer.key("readOnlyHint").boolean(tool.read_only);
  // Nothing outlives a sandbox, so that no tool can destroy anything of the user's.
  writer.key("destructiveHint").boolean(false);
  writer.key("idempotentHint").boolean(tool.read_only);
  writer.key("openWorldHint").boolean(tool.open_world).end_object();
}

void write_tool(JsonWriter& writer, const ToolDescription& tool, Revision revision) {
  writer.begin_object().key("name").string(tool.name);
  if (has_titles(revision)) writer.key("title").string(tool.title);
  writer.key("description").string(tool.description);
  writer.key("inputSchema").raw(tool.input_schema);
  if (has_structured_content(revision) && !tool.output_schema.empty()) {
    writer.key("outputSchema").raw(tool.output_schema);
  }
  if (has_tool_annotations(revision)) {
    writer.key("annotations");
    write_annotations(writer, tool);
  }
  writer.end_object();
}

void write_resource(JsonWriter& writer, const Resource& resource, Revision revision) {
  writer.begin_object().key("uri").string(resource.uri).key("name").string(resource.name);
  if (has_titles(revision)) writer.key("title").string(resource.title);
  writer.key("description").string(resource.description);
  writer.key("mimeType").string(resource.mime_type).end_object();
}

void reply_with_tool_result(ReplyOnce& reply, const ToolResult& result, Revision revision) {
  reply.result([&](JsonWriter& writer) { write_tool_result(writer, result, revision); });
}

}  // namespace

Server::Server(std::string version, std::vector<std::unique_ptr<Tool>> tools, std::vector<Resource> resources,
               Post post)
    : version_(std::move(version)), tools_(std::move(tools)), resources_(std::move(resources)), post_(std::move(post)) {
  bind_lifecycle();
  bind_tools();
  bind_resources();
}

void Server::bind_lifecycle() {
  dispatcher_.on_request<InitializeParams>(
      "initialize", [this](const InitializeParams& params, const Request& request, ReplyOnce reply) {
        if (request.in_batch) return reply.error({RpcCode::kInvalidRequest, "initialize must not be part of a batch"});
        const Revision revision = parse_revision(params.protocol_version).value_or(kNewestRevision);
        request.session->negotiate(revision);
        reply.result([&](JsonWriter& writer) { write_initialize_result(writer, revision, version_); });
      });
  dispatcher_.on_request<NoParams>("ping", [](NoParams, const Request&, ReplyOnce reply) {
    reply.result([](JsonWriter& writer) { writer.begin_object().end_object(); });
  });
  dispatcher_.on_notification<CancelledParams>(
      "notifications/cancelled",
      [](const CancelledParams& params, ClientSession& session) { session.cancel(params.id); });
}

void Server::bind_tools() {
  dispatcher_.on_request<ListParams>("tools/list", [this](ListParams, const Request& request, ReplyOnce reply) {
    reply.result([&](JsonWriter& writer) {
      writer.begin_object().key("tools").begin_array();
      for (const auto& tool : tools_) write_tool(writer, tool->describe(), request.revision);
      writer.end_array().end_object();
    });
  });

  dispatcher_.on_request<CallToolParams>(
      "tools/call", [this](CallToolParams params, const Request& request, ReplyOnce reply) {
        const Tool* tool = find_tool(params.name);
        if (tool == nullptr) {
          return reply.error({RpcCode::kInvalidParams, "unknown tool: " + params.name.substr(0, kMaxEchoedName)});
        }
        const auto shared_reply = std::make_shared<ReplyOnce>(std::move(reply));
        const auto arguments = std::make_shared<Json>(std::move(params.arguments));
        const ToolContext context{request.stop, request.report_progress};
        const Revision revision = request.revision;
        const bool accepted =
            run(shared_reply, request.stop, [tool, arguments, context, revision](ReplyOnce& worker_reply) {
              reply_with_tool_result(worker_reply, tool->call(*arguments, context), revision);
            });
        if (!accepted)
          reply_with_tool_result(*shared_reply, tool->refuse(Reason::kBackendUnavailable, kBusy), revision);
      });
}

void Server::bind_resources() {
  dispatcher_.on_request<ListParams>("resources/list", [this](ListParams, const Request& request, ReplyOnce reply) {
    reply.result([&](JsonWriter& writer) {
      writer.begin_object().key("resources").begin_array();
      for (const auto& resource : resources_) write_resource(writer, resource, request.revision);
      writer.end_array().end_object();
    });
  });

  dispatcher_.on_request<ListParams>("resources/templates/list", [](ListParams, const Request&, ReplyOnce reply) {
    reply.result([](JsonWriter& writer) { writer.raw(R"({"resourceTemplates":[]})"); });
  });

  dispatcher_.on_request<ReadResourceParams>(
      "resources/read", [this](const ReadResourceParams& params, const Request& request, ReplyOnce reply) {
        const Resource* resource = find_resource(params.uri);
        if (resource == nullptr) {
          const std::string uri = params.uri.substr(0, kMaxEchoedName);
          return reply.error({RpcCode::kResourceNotFound, "resource not found", "{\"uri\":" + json_string(uri) + "}"});
        }
        const auto shared_reply = std::make_shared<ReplyOnce>(std::move(reply));
        const bool accepted = run(shared_reply, request.stop, [resource](ReplyOnce& worker_reply) {
          const std::string text = resource->read();
          worker_reply.result([&](JsonWriter& writer) {
            writer.begin_object().key("contents").begin_array();
            write_resource_contents(writer, resource->uri, resource->mime_type, text);
            writer.end_array().end_object();
          });
        });
        if (!accepted) shared_reply->error({RpcCode::kInternalError, kBusy});
      });
}

const Tool* Server::find_tool(std::string_view name) const {
  for (const auto& tool : tools_)
    if (tool->name() == name) return tool.get();
  return nullptr;
}

const Resource* Server::find_resource(std::string_view uri) const {
  for (const auto& resource : resources_)
    if (resource.uri == uri) return &resource;
  return nullptr;
}

bool Server::run(std::shared_ptr<ReplyOnce> reply, std::stop_token stop, std::function<void(ReplyOnce&)> work) {
  return post_([reply = std::move(reply), stop = std::move(stop), work = std::move(work)] {
    if (stop.stop_requested()) return;  // the reply goes with the task; a cancelled call gets no answer
    try {
      work(*reply);
    } catch (const std::exception& error) {
      reply->error({RpcCode::kInternalError, std::string("internal error: ") + error.what()});
    }
  });
}

}  // namespace llm_sandbox::mcp
