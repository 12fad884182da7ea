#pragma once

// The plain threads that wait for objects of this library, for reports. Each has a place in one table of the process
// for the time of its wait. A table without a lock, and not a list through the threads' frames, because a child of
// fork() has it too, but not the frames. If more threads wait, they are in no report. The places of a parent's threads
// stay taken in its child.
//
// State
//   thread   the kernel's number of the thread that has the place; 0: free. Taken by an exchange, freed by its thread.
//   since    when the wait began; 0: the other members are not valid. Different for each wait of a place, if the clock
//            is fine enough; else a record may mix two waits.
//   object, bits   of the wait, as wait_mode. Written by the thread that has the place, while since is 0.
//
// Pairings
//   A  the thread stores since, release  ->  a reader loads it, acquire: it sees the wait.
//   B  the next thread stores object and bits, release  ->  a reader loads them, acquire: then its second load of since
//      sees that the former wait has ended.
//   C  a thread frees the place, release  ->  the next one takes it, acquire, and a reader loads its number, acquire:
//      then its second load of since sees that the former wait has ended.

#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// A plain thread waits as long as this lives. In the waiting thread only.
class blocked_thread {
 public:
  static constexpr std::size_t most = 64;

  struct record {
    int thread;
    wait_mode mode;
    std::int64_t since;  // nanoseconds of the steady clock
  };

  explicit blocked_thread(wait_mode mode) noexcept {
    const int number = ::gettid();
    for (std::size_t i = 0; i < most && !mine_; ++i) {
      place& at = all_[(static_cast<std::size_t>(number) + i) % most];
      if (at.thread.load(std::memory_order_relaxed) != 0) continue;  // hint: spares the exchange
      int free = 0;
      if (at.thread.compare_exchange_strong(free, number, std::memory_order_acquire,  // C
                                            std::memory_order_relaxed))               // taken
        mine_ = &at;
    }
    if (!mine_) return;
    mine_->object.store(mode.object, std::memory_order_release);  // B
    mine_->bits.store(mode.bits, std::memory_order_release);      // B
    mine_->since.store(now_ns(), std::memory_order_release);      // A
  }
  ~blocked_thread() {
    if (!mine_) return;
    mine_->since.store(0, std::memory_order_relaxed);   // ordered by B of the next wait
    mine_->thread.store(0, std::memory_order_release);  // C
  }
  blocked_thread(const blocked_thread&) = delete;
  blocked_thread& operator=(const blocked_thread&) = delete;

  // Calls visit(const record&) for the threads that wait, and in a child of fork() also for those that waited in its
  // parent. Any thread.
  template <class Visit>
  static void for_each(Visit&& visit) {
    for (const place& at : all_) {
      const std::int64_t since = at.since.load(std::memory_order_acquire);  // A
      if (since == 0) continue;
      const void* const object = at.object.load(std::memory_order_acquire);                  // B
      const std::uint8_t bits = at.bits.load(std::memory_order_acquire);                     // B
      const record found{at.thread.load(std::memory_order_acquire), {object, bits}, since};  // C
      if (at.since.load(std::memory_order_relaxed) == since) visit(found);                   // ordered by B and C
    }
  }

 private:
  struct alignas(64) place {
    std::atomic<int> thread;
    std::atomic<std::uint8_t> bits;
    std::atomic<const void*> object;
    std::atomic<std::int64_t> since;
  };
  static constinit inline place all_[most]{};

  place* mine_ = nullptr;
};

}  // namespace ulexite::detail
