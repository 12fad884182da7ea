#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite {

namespace detail {
struct rare_task_state;
}

// Keeps the calling fiber on one thread until the guard is destroyed, even when the fiber waits. It is the thread on
// which the constructor returns. Use it with libraries that keep state per thread: thread_local caches, errno-like
// error queues (OpenSSL), attached threads (JNI). Other fibers of this worker run while the fiber waits. So data that
// it shares with them through a thread_local must be consistent at each wait. Guards nest.
//
// Its cost: a wake from another worker takes some microseconds longer, because it must reach this worker. parallel_for
// and the other parallel functions run on this worker only. block_in_place keeps the worker, also in other fibers of
// this worker. resize keeps this worker. No effect on a plain thread.
class [[nodiscard]] migration_guard {
 public:
  // Begins the guard. Yields once. Not a cancellation point. Throws std::bad_alloc, and usage_error under no_suspend,
  // unless the fiber has a guard already.
  [[nodiscard]] migration_guard();
  // Ends the guard; only its own fiber may call it. Yields once.
  ~migration_guard();
  migration_guard(const migration_guard&) = delete;
  migration_guard& operator=(const migration_guard&) = delete;

 private:
  detail::rare_task_state* pinned_ = nullptr;
};

}  // namespace ulexite
