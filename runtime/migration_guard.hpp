#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite {

namespace detail {
struct rare_task_state;
}

// While it lives, the calling fiber stays on one thread, whatever it waits for: the one that it is on when the
// constructor returns. For what belongs to a thread behind the program's back: thread_local caches, errno-like error
// queues (OpenSSL), attached threads (JNI). Other fibers of that worker run while it waits, so what it shares through
// a thread_local must be right at each wait. May be nested.
//
// The price: a wake from another worker takes some microseconds longer, because it has to come to this one;
// parallel_for and its kin run on this worker only; block_in_place does not give the worker away, also in other fibers
// that it runs; resize leaves this worker in place. Nothing on a plain thread, which stays on itself.
class [[nodiscard]] migration_guard {
 public:
  // Lets others run once. Not a cancellation point. Throws std::bad_alloc.
  [[nodiscard]] migration_guard();
  // By the fiber that made it. Lets others run once.
  ~migration_guard();
  migration_guard(const migration_guard&) = delete;
  migration_guard& operator=(const migration_guard&) = delete;

 private:
  detail::rare_task_state* pinned_ = nullptr;
};

}  // namespace ulexite
