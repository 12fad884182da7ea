#pragma once

// A lock for one writer or many readers, with std::shared_timed_mutex's interface.
//
// Invariants, under the guard:
//   a writer holds it   implies  no reader does
//   an agent waits      implies  an agent holds it, and the oldest live waiter cannot get it yet

#include <ulexite/sync/wait/wait_queue.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ulexite {

namespace detail {
class shared_lock_operation;
}

// A mutex with two kinds of holders: one writer, or any number of readers. Fair to both: waiters get it in the order of
// their arrival, and consecutive readers get it together. A reader that arrives while a writer waits queues behind the
// writer. So a reader must not lock it again: if a writer arrives in between, both would wait for ever.
//
// It is not recursive, and it is checked. Three misuses throw usage_error and change nothing. They are: a lock of any
// kind by the writer that holds it, an unlock by another caller, and an unlock_shared while no reader holds it. The
// fiber or thread that locked it must unlock it: a fiber that ends while it holds the lock fails with a usage_error.
// Fibers and plain threads may use it at the same time. It works with std::unique_lock, std::shared_lock and
// std::scoped_lock. Not a cancellation point.
//
// It may be destroyed after every call on it has returned, if there will be no other.
class shared_mutex {
 public:
  shared_mutex() = default;
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  // Waits until the caller holds the mutex as its writer.
  void lock() { lock(kind::writer, detail::no_deadline, "lock"); }
  // Takes the mutex as its writer if it is free. Never waits.
  [[nodiscard]] bool try_lock() noexcept { return try_lock(kind::writer); }
  // Waits as lock(), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool try_lock_for(relative_timeout time) { return lock(kind::writer, time.deadline(), "try_lock_for"); }
  [[nodiscard]] bool try_lock_until(absolute_timeout time) {
    return lock(kind::writer, time.deadline(), "try_lock_until");
  }
  // Unlocks the mutex as its writer. Never waits.
  void unlock();

  // Waits until the caller holds the mutex as a reader.
  void lock_shared() { lock(kind::reader, detail::no_deadline, "lock_shared"); }
  // Takes the mutex as a reader, unless a writer holds it or waits. Never waits.
  [[nodiscard]] bool try_lock_shared() noexcept { return try_lock(kind::reader); }
  // Waits as lock_shared(), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool try_lock_shared_for(relative_timeout time) {
    return lock(kind::reader, time.deadline(), "try_lock_shared_for");
  }
  [[nodiscard]] bool try_lock_shared_until(absolute_timeout time) {
    return lock(kind::reader, time.deadline(), "try_lock_shared_until");
  }
  // Unlocks the mutex as a reader. Never waits.
  void unlock_shared();

 private:
  enum class kind : std::uint8_t { reader, writer };
  struct waiter : detail::wait_node {
    waiter(detail::agent& self, kind wanted) noexcept : wait_node(self), as(wanted) {}
    kind as;
  };
  friend class detail::shared_lock_operation;

  bool lock(kind as, std::int64_t deadline, const char* operation);
  bool try_lock(kind as) noexcept;
  // Whether the mutex is the waiter's now. If not, it is in the queue, and guard_ is held. Throws as lock().
  [[nodiscard]] bool lock_or_queue(waiter& waiter, const char* operation);
  void unlink(waiter& waiter) noexcept;
  [[nodiscard]] detail::wait_mode waiting() const noexcept {
    return detail::waiting_for(detail::wait_kind::shared_mutex, this, detail::cancellable::no);
  }
  [[nodiscard]] bool admits(kind as) const noexcept { return !writer_ && (as == kind::reader || readers_ == 0); }
  void let_in(kind as, detail::agent& who) noexcept;
  void unlock_and_let_in() noexcept;

  detail::spin_lock guard_;          // guards the rest
  detail::agent* writer_ = nullptr;  // the holder, if it is a writer
  std::size_t readers_ = 0;          // the number of holders, if they are readers
  detail::wait_queue queue_;
};

}  // namespace ulexite
