#include "sandbox/egress/lookups.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <mutex>
#include <set>
#include <system_error>

namespace llm_sandbox::egress {
namespace {

constexpr size_t kMaxTasks = 128;
constexpr size_t kMaxAddresses = 16;

tl::unexpected<Error> cannot_resolve(const std::string& host, int error_number) {
  return fail(ErrorCode::kNotFound, "The host " + host + " cannot be looked up: " + gai_strerror(error_number) + ".");
}

}  // namespace

Result<std::vector<IpAddress>> resolve_by_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error_number = getaddrinfo(host.c_str(), nullptr, &hints, &list); error_number != 0)
    return cannot_resolve(host, error_number);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<IpAddress> addresses;
  for (const addrinfo* each = list; each != nullptr && addresses.size() < kMaxAddresses; each = each->ai_next)
    if (const auto address = from_sockaddr(each->ai_addr)) addresses.push_back(*address);
  if (addresses.empty()) return cannot_resolve(host, EAI_NONAME);
  return addresses;
}

/// What the threads may still touch when we are gone.
struct Lookups::Shared {
  std::mutex mutex;
  std::function<void(std::function<void()>)> post;  ///< empty: nobody waits any more
  std::set<uint64_t> answered;
};

Lookups::Lookups(EgressPolicy::Resolve resolve, std::function<void(std::function<void()>)> post)
    : resolve_(std::move(resolve)), shared_(std::make_shared<Shared>()) {
  shared_->post = std::move(post);
}

Lookups::~Lookups() {
  const std::lock_guard lock(shared_->mutex);
  shared_->post = nullptr;
  for (auto& [id, task] : tasks_) {
    // Those that have answered hold the lock no more and have nothing left to do.
    if (shared_->answered.count(id) != 0)
      task.thread.join();
    else
      task.thread.detach();
  }
}

Result<void> Lookups::start(const std::string& host, Done done) {
  if (tasks_.size() >= kMaxTasks) return fail(ErrorCode::kBusy, "Too many hosts are being looked up.");
  const uint64_t id = next_id_++;
  auto look_up = [this, id, host, resolve = resolve_, shared = shared_] {
    try {
      auto result = resolve(host);
      const std::lock_guard lock(shared->mutex);
      if (!shared->post) return;
      shared->post([this, id, result = std::move(result)] { finish(id, result); });
      shared->answered.insert(id);
    } catch (const std::exception&) {
      return;  // no memory: whoever waits gives up at its deadline
    }
  };
  try {
    tasks_.emplace(id, Task{std::thread(std::move(look_up)), std::move(done)});
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kBusy, std::string("No thread can be made to look up ") + host + ": " + error.what() + ".");
  }
  return {};
}

void Lookups::finish(uint64_t id, const Result<std::vector<IpAddress>>& result) {
  auto task = tasks_.extract(id);
  task.mapped().thread.join();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->answered.erase(id);
  }
  task.mapped().done(result);
}

}  // namespace llm_sandbox::egress
