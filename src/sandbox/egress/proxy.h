#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/egress/policy.h"

namespace llm_sandbox {

/// The only way out of a sandbox while packages are installed: an HTTP proxy (CONNECT, and requests for http:// URLs)
/// on a UNIX socket, which the relay (relay.h) forwards to. It looks names up itself, judges each address, and connects
/// to the very address that it judged.
/// Works on a thread of its own. All members may be called from any thread.
class EgressProxy {
 public:
  /// Makes the socket, which must not exist yet. It belongs to the owner of its folder, and only they (and root) can
  /// connect. kInvalidArgument (path too long for a socket), kIo.
  static Result<std::unique_ptr<EgressProxy>> start(EgressPolicy policy, const std::string& socket_path);
  /// Cuts all connections at once and removes the socket. Does not wait for a look-up in which the system's resolver
  /// hangs: that thread ends by itself.
  ~EgressProxy();

  /// What was refused so far, each once and the first 32 only: "10.0.0.1 is a private address".
  std::vector<std::string> refused() const;

 private:
  class Server;
  explicit EgressProxy(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

}  // namespace llm_sandbox
