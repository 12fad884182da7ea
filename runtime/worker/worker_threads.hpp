#pragma once

// The threads of a runtime: the monitor's, and those that run the workers. How they are started and ended.
//
// State
//   first_.done      the first worker was started. Set once, with first_.mutex held.
//   in_hooks_        workers in on_thread_start, which has not returned. Written by them; a hint for them and the
//                    monitor.
//   refused_         how often the system refused a thread. Written with the parker's mutex held.
//   refused_until_   before that time none is asked for. Written by the thread that was refused; a hint.
//   quota_.ignored   guarded by quota_.guard, which is taken before the parker's mutex. The monitor owns quota_.last.
//   first_           guarded by its mutex, which is taken before the parker's.
//   threads_, started_   guarded by the parker's mutex.
//
// Pairings
//   A  ensure_worker stores first_.done, release  ->  it loads first_.done, acquire: sees the first worker started.

#include <ulexite/base/counter.hpp>
#include <ulexite/runtime/options.hpp>
#include <ulexite/runtime/threads/inherited_thread_state.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace ulexite::detail {

class runtime_state;
class task;

class worker_threads {
 public:
  worker_threads(runtime_state& rt, const runtime_options& options);
  worker_threads(const worker_threads&) = delete;
  worker_threads& operator=(const worker_threads&) = delete;

  // How many workers there can be, at most and at first.
  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  [[nodiscard]] std::size_t first_limit() const noexcept { return first_limit_; }
  // Whether there are more workers than processors: then a worker that spins keeps another from running.
  [[nodiscard]] bool crowded() const noexcept { return crowded_; }

  // Ensures that published work can run: that a worker was started, and has stacks. Throws std::system_error if the
  // system refuses the first thread or the first stack. Waits for another caller that does the same. Called by a thread
  // outside, before it publishes.
  void ensure_worker();

  // Starts one more worker, as a searcher. False: refused, or the runtime ends. Any thread.
  [[nodiscard]] bool start() noexcept;
  [[nodiscard]] bool starts_suspended() const noexcept;
  // Makes the calling thread the worker of that number, until the worker must end or goes to another thread. Returns a
  // fiber that the caller must make runnable, or null.
  task* be_worker(std::size_t index) noexcept;
  // Ends the monitor, and all workers at their next safepoint, and joins them. A plain thread.
  void end_all() noexcept;

  // Sets the limit to the quota of a process's control groups, but at most to the limit at the start. Throws as
  // quota_processors.
  void apply_quota(const std::string& process);
  // The same for this process, each minute, unless the user gave a number. Called by the monitor.
  void check_quota(std::int64_t now) noexcept;
  // The user's decision: sets the limit, and the quota counts no longer.
  void resize(std::size_t to) noexcept;

  [[nodiscard]] std::uint32_t in_hooks() const noexcept { return in_hooks_.load(std::memory_order_relaxed); }  // hint
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.get(); }

 private:
  // The start of the first worker: one thread tries, the others wait for it.
  struct first_start {
    std::mutex mutex;
    std::error_code refused;  // the system's reason
    std::atomic<bool> done{false};
  };
  // The quota of this process's control groups.
  struct quota {
    const bool counts;     // the user gave no number of workers
    std::int64_t last;     // when the quota was read; the monitor's
    std::mutex guard{};    // guards ignored, and the limit as its consequence
    bool ignored = false;  // the user has decided since
  };

  void call_start_hook(std::size_t index);
  void on_refusal(const std::exception& why) noexcept;

  runtime_state& runtime_;
  const std::size_t first_limit_;  // before any resize
  const std::size_t most_;
  const bool crowded_;
  const inherited_thread_state inherited_;

  first_start first_;
  std::atomic<std::uint32_t> in_hooks_{0};
  counter refused_;
  hint<std::int64_t> refused_until_;  // ns of the steady clock
  std::vector<std::thread> threads_;  // the monitor's is the first
  std::size_t started_ = 0;           // the number of the next worker
  quota quota_;
};

}  // namespace ulexite::detail
