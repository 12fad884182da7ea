#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite {

namespace detail {
struct rare_task_state;
}

// Keeps the calling fiber on one thread until the end of the scope, even when the fiber waits. It is the thread on
// which the constructor returns. Use it with libraries that keep state per thread: thread_local caches, errno-like
// error queues (OpenSSL), attached threads (JNI). Other fibers of this worker run while the fiber waits. So data that
// it shares with them through a thread_local must be consistent at each wait. Scopes nest.
//
// Its cost: a wake from another worker takes some microseconds longer, because it must reach this worker. parallel_for
// and the other parallel functions run on this worker only. block_in_place keeps the worker, also in other fibers of
// this worker. resize keeps this worker. No effect on a plain thread.
class [[nodiscard]] no_migration_scope {
 public:
  // Begins the scope. Yields once. Not a cancellation point. Throws std::bad_alloc, and usage_error under a
  // no_suspend_scope, unless the fiber is in such a scope already.
  [[nodiscard]] no_migration_scope();
  // Ends the scope; only its own fiber may call it. Yields once.
  ~no_migration_scope();
  no_migration_scope(const no_migration_scope&) = delete;
  no_migration_scope& operator=(const no_migration_scope&) = delete;

 private:
  detail::rare_task_state* pinned_ = nullptr;
};

// The former name.
using migration_guard [[deprecated("use no_migration_scope")]] = no_migration_scope;

}  // namespace ulexite
