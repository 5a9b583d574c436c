#include "backends/bubblewrap/reaper.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

namespace llm_sandbox {

using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 10s;     ///< for the kernel's teardown; 1,000 processes take about one second
constexpr int kRemovalRetryMs = 3;  ///< nothing tells when the last process has left a v1 group

}  // namespace

/// A sandbox on its way out.
struct Reaper::Grave {
  HostResources resources;
  Deadline patience = Deadline::after(kPatience);

  /// True when all is gone, or we have given up.
  bool settle() {
    if (ended() && resources.cgroup.remove()) return true;
    if (!patience.passed()) return false;
    spdlog::warn("A closed sandbox does not go away (launcher {}); its host id stays taken.", resources.monitor.pid());
    // Child's destructor would wait for ever, and what still runs keeps its id to itself.
    static_cast<void>(new HostResources(std::move(resources)));
    return true;
  }

  /// The descriptor whose readability is the next step; -1: none, look again soon.
  int next_event() const { return resources.monitor.pidfd(); }

 private:
  bool ended() { return resources.monitor.pid() <= 0 || resources.monitor.wait(Deadline::after(0s)).has_value(); }
};

Reaper::Reaper() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = std::thread([this] { work(); });
}

Reaper::~Reaper() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Reaper::bury(HostResources resources) noexcept {
  resources.lifeline.reset();
  {
    const std::lock_guard lock(mutex_);
    fresh_.emplace_back();
    fresh_.back().resources = std::move(resources);
    ++open_graves_;
  }
  eventfd_write(wake_.get(), 1);
}

bool Reaper::drain(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto none_left = [this] { return open_graves_ == 0; };
  if (!deadline.is_never()) return empty_.wait_until(lock, deadline.time_point(), none_left);
  empty_.wait(lock, none_left);
  return true;
}

bool Reaper::next_round(std::list<Grave>& graves) {
  const std::lock_guard lock(mutex_);
  graves.splice(graves.end(), fresh_);
  open_graves_ = graves.size();
  if (open_graves_ == 0) empty_.notify_all();
  return open_graves_ > 0 || !closing_;
}

void Reaper::work() {
  std::list<Grave> graves;
  while (next_round(graves)) {
    std::vector<pollfd> events{{wake_.get(), POLLIN, 0}};
    int timeout = -1;
    for (auto grave = graves.begin(); grave != graves.end();) {
      if (grave->settle()) {
        grave = graves.erase(grave);
        timeout = 0;  // drain() wants to know
        continue;
      }
      const int event = grave->next_event();
      if (event >= 0) events.push_back({event, POLLIN, 0});
      const int look_again = event < 0 ? kRemovalRetryMs : 500;
      timeout = timeout < 0 ? look_again : std::min(timeout, look_again);
      ++grave;
    }
    poll(events.data(), events.size(), timeout);
    eventfd_t ignored;
    eventfd_read(wake_.get(), &ignored);
  }
}

}  // namespace llm_sandbox
