#include "sandbox/worker_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace llm_sandbox {

WorkerPool::WorkerPool(size_t threads, size_t queue_capacity) : capacity_(queue_capacity) {
  threads_.reserve(threads);
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;  // fewer than asked for will do
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool WorkerPool::try_post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || queue_.size() >= capacity_) return false;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::work() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

size_t default_worker_count() {
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::min<size_t>(32, 4 * cores);
}

}  // namespace llm_sandbox
