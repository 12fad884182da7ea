#include <ulexite/base/error.hpp>
#include <ulexite/sync/mutex.hpp>

#include <mutex>

namespace ulexite {
namespace {

constexpr int looks = 4;                      // at an owner that most likely runs, before the caller goes to sleep
constexpr int pauses_per_look = 30;           // seldom, for each look takes the word from the owner's cache
constexpr std::int64_t patience = 1'000'000;  // ns

}  // namespace

// A waiter that was woken and passed over comes back to the head of the queue.
struct mutex::waiter : detail::wait_node {
  using wait_node::wait_node;
  std::int64_t since = 0;
  bool handed_over = false;
};

bool mutex::try_lock() noexcept {
  const std::uintptr_t self = id(detail::this_agent());
  std::uintptr_t word = word_.load(std::memory_order_relaxed);  // hint: the exchange decides
  while ((word & ~contended_bit) == 0)
    if (word_.compare_exchange_weak(word, word | self, std::memory_order_acquire, std::memory_order_relaxed))  // A
      return true;
  return false;
}

// The owner most likely runs on another worker, and is about to be done.
bool mutex::spin(std::uintptr_t self) noexcept {
  for (int look = 0; look < looks; ++look) {
    std::uintptr_t word = word_.load(std::memory_order_relaxed);  // hint: the exchange decides
    if (word & contended_bit) return false;
    if (word == 0 &&
        word_.compare_exchange_weak(word, self, std::memory_order_acquire, std::memory_order_relaxed))  // A
      return true;
    for (int i = 0; i < pauses_per_look; ++i) detail::cpu_relax();
  }
  return false;
}

// Takes the mutex, or marks it so that its owner's unlock looks at the queue. Guard held.
bool mutex::take_or_mark(std::uintptr_t self) noexcept {
  std::uintptr_t word = word_.load(std::memory_order_relaxed);  // hint: the exchange decides
  for (;;) {
    const bool free = (word & ~contended_bit) == 0;
    const std::uintptr_t next = free ? word | self : word | contended_bit;
    if (word_.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed))  // A
      return free;
  }
}

void mutex::lock_slow(detail::agent& self) {
  if (held_by(self)) throw usage_error("mutex::lock by its owner");
  if (spin(id(self))) return;
  waiter waiter(self);
  for (bool again = false;; again = true) {
    guard_.lock();
    if (take_or_mark(id(self))) {
      guard_.unlock();
      return;
    }
    if (!again) waiter.since = detail::now_ns();
    again ? queue_.push_front(waiter) : queue_.push(waiter);
    detail::suspend(self, guard_, detail::cancellable::no);
    if (waiter.handed_over) return;
  }
}

void mutex::unlock_slow(detail::agent& self) {
  if (!held_by(self)) throw usage_error("mutex::unlock by another than its owner");
  guard_.lock();
  auto* const next = static_cast<waiter*>(queue_.claim_oldest().node);
  const std::uintptr_t more = queue_.empty() ? 0 : contended_bit;
  if (!next) {
    word_.store(0, std::memory_order_release);  // A
    guard_.unlock();
    return;
  }
  detail::agent& who = *next->who;
  next->handed_over = detail::now_ns() - next->since > patience;
  word_.store((next->handed_over ? id(who) : 0) | more, std::memory_order_release);  // A
  guard_.unlock();
  detail::resume(who);
}

}  // namespace ulexite
