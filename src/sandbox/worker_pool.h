#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace llm_sandbox {

/// A fixed number of threads and a bounded queue before them. One execution = one worker from admission to answer.
class WorkerPool {
 public:
  /// Makes do with fewer threads where the system allows no more; std::system_error if it allows none.
  WorkerPool(size_t threads, size_t queue_capacity);
  /// Runs what is queued, then joins.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Queues a task; false, at once, when the queue is full. Tasks must not throw.
  [[nodiscard]] bool try_post(std::function<void()> task);
  size_t queue_capacity() const { return capacity_; }

 private:
  void work();

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

/// min(32, 4 × cores).
size_t default_worker_count();

}  // namespace llm_sandbox
