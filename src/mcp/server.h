#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/dispatcher.h"
#include "mcp/tool.h"

namespace llm_sandbox::mcp {

/// A document that clients can read.
struct Resource {
  std::string uri;
  std::string name;
  std::string title;
  std::string description;
  std::string mime_type;
  std::function<std::string()> read;  ///< may take time; called on a worker
};

/// Hands work to a worker; false, at once, when no more can be queued.
using Post = std::function<bool(std::function<void()>)>;

/// The methods of MCP that this server has, over any tools and resources. Thread contract of Dispatcher::handle; must
/// outlive the posted work.
class Server {
 public:
  /// `version` is the program's. The order of the tools is the order that clients see.
  Server(std::string version, std::vector<std::unique_ptr<Tool>> tools, std::vector<Resource> resources, Post post);

  Dispatcher& dispatcher() { return dispatcher_; }

 private:
  void bind_lifecycle();
  void bind_tools();
  void bind_resources();

  const Tool* find_tool(std::string_view name) const;
  const Resource* find_resource(std::string_view uri) const;
  /// Runs `work` on a worker, with whatever it throws made an internal error; false when there is no room.
  bool run(std::shared_ptr<ReplyOnce> reply, std::stop_token stop, std::function<void(ReplyOnce&)> work);

  const std::string version_;
  const std::vector<std::unique_ptr<Tool>> tools_;
  const std::vector<Resource> resources_;
  const Post post_;
  Dispatcher dispatcher_;
};

}  // namespace llm_sandbox::mcp
