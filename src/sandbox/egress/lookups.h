#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/egress/policy.h"

namespace llm_sandbox::egress {

/// The system's resolver: getaddrinfo(3).
Result<std::vector<IpAddress>> resolve_by_system(const std::string& host);

/// Looks names up without keeping its thread waiting: each on a thread of its own, as getaddrinfo blocks and cannot be
/// interrupted. Belongs to one thread, on which `post` (callable from any) runs what it is given.
class Lookups {
 public:
  using Done = std::function<void(const Result<std::vector<IpAddress>>&)>;

  Lookups(EgressPolicy::Resolve resolve, std::function<void(std::function<void()>)> post);
  /// Forgets what is not done yet. Threads that have their answer are joined; one whose resolver hangs is left to end
  /// by itself.
  ~Lookups();
  Lookups(const Lookups&) = delete;
  Lookups& operator=(const Lookups&) = delete;

  /// `done` is called later, by `post`. kBusy, at once, while too many are under way.
  Result<void> start(const std::string& host, Done done);

 private:
  struct Shared;
  struct Task {
    std::thread thread;
    Done done;
  };
  void finish(uint64_t id, const Result<std::vector<IpAddress>>& result);

  const EgressPolicy::Resolve resolve_;
  const std::shared_ptr<Shared> shared_;
  std::map<uint64_t, Task> tasks_;
  uint64_t next_id_ = 0;
};

}  // namespace llm_sandbox::egress
