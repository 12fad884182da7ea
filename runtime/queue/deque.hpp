#pragma once

// The run queue of one scheduler: a bounded work-stealing deque after Arora, Blumofe and Plaxton (2001). It is a
// circular array with the ever-growing 64-bit indices of Chase and Lev (2005). `top` is its own tag, so nothing is
// reset and nothing wraps.
//
//   push         the owner only, at the bottom.
//   pop_top      any thread, at the top: the oldest item.
//   steal_half   any thread, the older half into the thief's own deque.
//   take_newest  the owner only: some of the younger half.
//   pop_bottom   the owner only: the youngest item.
//   pop_oldest   the owner only: the oldest item.
//   steal        any thread: the oldest item.
//
// One deque is consumed in one of two ways. Fibers and jobs: pop_top, steal_half and take_newest, first in, first out.
// Forks: pop_bottom, pop_oldest and steal, so the owner takes the youngest. pop_bottom and steal_half must not be used
// together. pop_bottom takes every item except the last one without an exchange, so a thief that claims several would
// take one twice. The Order parameter makes that a compile error.
//
// State
//   bottom_    index of the next push. Written by the owner only.
//   top_       index of the oldest item. Never decreases. Raised by takers at the top.
//   slots_     item i is in slots_[i % Capacity] while top_ <= i < bottom_.
//   opaque_    not below the index of an opaque item (push_opaque). Written by the owner only; published by A.
//
// Pairings
//   A  push, steal_half (into its own deque), pop_bottom and take_newest store bottom_, release  ->  a taker at the top
//      loads it, acquire. A thief that sees bottom_ > i sees item i and its pusher's earlier writes. The stores of
//      pop_bottom and take_newest count too: a thief may read the value that they wrote, and C++20 release sequences do
//      not reach over it.
//   B  pop_bottom lowers bottom_, then loads top_; steal loads top_, then bottom_, then raises top_. Between its two
//      steps the owner has a light fence and the thief a heavy one (fences.hpp). The owner forks for every few
//      instructions of work, so its fence costs nothing. The thief has found something to steal, and pays for both. If
//      the owner's fence is first, the thief sees the lowered bottom_ and leaves the item. If the thief's fence is
//      first, the owner sees at least the thief's top_, so it takes the last item by C.
//   C  all who take at the top exchange top_: exactly one succeeds.
//   D  a taker raises top_, release  ->  push loads top_, acquire: the taker has read the slot before the owner fills
//      it again.
//   E  a taker raises top_, release  ->  the next taker loads top_, acquire: its load of bottom_ is not older.
//   F  a pusher stores bottom_, then executes a full fence  ->  may_have_items loads it, seq_cst, after a seq_cst
//      change of the idle word. This is half of idle.hpp's pairing A. An acquire load might be older than that change.
//      (A fork has no such fence, see fork_queue::offer.)
//   G  take_newest lowers bottom_, then exchanges top_ for the same value, release  ->  a thief loads a higher top_,
//      acquire, from the exchanges that follow, so that it sees the lowered bottom_. A thief that has the same top_ may
//      have the old bottom_. It takes the older half of what was there, and the owner only takes of the younger. So the
//      owner does that once for each value of top_: a slow thief could not tell the second time from the first.
//
// Checked by tests/model/deque_model.cpp; its mutants weaken A, B, C, F and G.

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/cache_line.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ulexite::detail {

enum class deque_order { first_in_first_out, last_in_first_out };

template <class T, std::size_t Capacity, deque_order Order, class Atomics = std_atomics>
class deque {
  static_assert((Capacity & (Capacity - 1)) == 0, "slot() masks instead of dividing");
  static constexpr bool fifo = Order == deque_order::first_in_first_out;

 public:
  deque() = default;
  deque(const deque&) = delete;
  deque& operator=(const deque&) = delete;

  // Adds `item`. Returns false, and adds nothing, when the deque is full. Owner only.
  [[nodiscard]] bool push(T& item) noexcept {
    const auto bottom = bottom_.load(Atomics::relaxed);                  // owner-written
    if (bottom - top_.load(Atomics::acquire) == capacity) return false;  // D
    put(bottom, item);
    return true;
  }

  // As push. Returns the number of items before, without regard to thefts in progress, or -1 if the deque is full.
  // Owner only.
  [[nodiscard]] std::int64_t push_after(T& item) noexcept {
    const auto bottom = bottom_.load(Atomics::relaxed);  // owner-written
    const auto top = top_.load(Atomics::acquire);        // D
    if (bottom - top == capacity) return -1;
    put(bottom, item);
    return bottom - top;
  }

  // As push, of an item of which no look ahead is allowed, because its memory may be gone once it was taken.
  [[nodiscard]] bool push_opaque(T& item) noexcept
    requires fifo
  {
    opaque_.store(bottom_.load(Atomics::relaxed), Atomics::relaxed);  // owner-written, published by A
    return push(item);
  }

  // Takes the oldest item, or returns null when there is none. Any thread. The owner may pass a function: it is called
  // with the two items behind that one, if there are two that are not opaque. Thieves may have taken them, so it may
  // only prefetch them.
  template <class Ahead = std::nullptr_t>
  [[nodiscard]] T* pop_top(Ahead ahead = nullptr) noexcept
    requires fifo
  {
    auto top = top_.load(Atomics::acquire);  // E
    for (;;) {
      const auto bottom = bottom_.load(Atomics::acquire);  // A
      if (top >= bottom) return nullptr;
      look_ahead(top, bottom, ahead);
      T* const item = slot(top).load(Atomics::relaxed);  // published by A; kept only if C succeeds
      if (top_.compare_exchange_strong(top, top + 1, Atomics::acq_rel, Atomics::acquire)) return item;  // C, D, E
    }
  }

  // pop_top for a deque from which only the owner ever takes. Uses no exchange.
  template <class Ahead = std::nullptr_t>
  [[nodiscard]] T* pop_top_alone(Ahead ahead = nullptr) noexcept
    requires fifo
  {
    const auto top = top_.load(Atomics::relaxed);        // owner-written
    const auto bottom = bottom_.load(Atomics::relaxed);  // owner-written
    if (top == bottom) return nullptr;
    look_ahead(top, bottom, ahead);
    top_.store(top + 1, Atomics::relaxed);    // owner-written
    return slot(top).load(Atomics::relaxed);  // own push
  }

  // Takes the youngest item, or returns null when there is none or a thief took the last one. Owner only.
  [[nodiscard]] T* pop_bottom() noexcept
    requires(!fifo)
  {
    const auto bottom = bottom_.load(Atomics::relaxed) - 1;        // owner-written
    bottom_.store(bottom, Atomics::release);                       // A, B
    Atomics::light_fence();                                        // B
    auto top = top_.load(Atomics::relaxed);                        // B, ordered by the fence
    if (top < bottom) return slot(bottom).load(Atomics::relaxed);  // own push

    T* item = nullptr;
    if (top == bottom) {
      item = slot(bottom).load(Atomics::relaxed);                                                           // own push
      if (!top_.compare_exchange_strong(top, top + 1, Atomics::acq_rel, Atomics::relaxed)) item = nullptr;  // C, D, E
    }
    bottom_.store(bottom + 1, Atomics::release);  // A
    return item;
  }

  // Takes the oldest item, or returns null when there is none. Owner only. The owner calls this, so it is not in
  // pop_bottom, and B is not needed.
  [[nodiscard]] T* pop_oldest() noexcept
    requires(!fifo)
  {
    const auto bottom = bottom_.load(Atomics::relaxed);            // owner-written
    for (auto top = top_.load(Atomics::acquire); top < bottom;) {  // E
      T* const item = slot(top).load(Atomics::relaxed);            // own push; kept only if C succeeds
      if (top_.compare_exchange_strong(top, top + 1, Atomics::acq_rel, Atomics::acquire)) return item;  // C, D, E
    }
    return nullptr;
  }

  // Takes the oldest item, or returns null when there is none, or another thread was faster. Any thread.
  [[nodiscard]] T* steal() noexcept
    requires(!fifo)
  {
    auto top = top_.load(Atomics::acquire);                     // E
    if (top >= bottom_.load(Atomics::relaxed)) return nullptr;  // hint: spares the fence
    Atomics::heavy_fence();                                     // B
    if (top >= bottom_.load(Atomics::acquire)) return nullptr;  // A, B
    T* const item = slot(top).load(Atomics::relaxed);           // published by A; kept only if C succeeds
    if (!top_.compare_exchange_strong(top, top + 1, Atomics::acq_rel, Atomics::relaxed)) return nullptr;  // C, D, E
    return item;
  }

  // Whether there is no item. A hint. Any thread.
  [[nodiscard]] bool seems_empty() const noexcept {
    return bottom_.load(Atomics::relaxed) - top_.load(Atomics::relaxed) <= 0;  // hint
  }

  // Takes the older half (rounded up) of the items. Returns the oldest, and pushes the others to `thief`, the caller's
  // own deque. Null if there is none, or others were faster four times. Any thread.
  [[nodiscard]] T* steal_half(deque& thief) noexcept
    requires fifo
  {
    for (int attempt = 0; attempt < 4; ++attempt) {
      auto top = top_.load(Atomics::acquire);              // E
      const auto bottom = bottom_.load(Atomics::acquire);  // A
      const auto available = bottom - top;
      if (available <= 0) return nullptr;
      if (available > capacity) continue;  // top was overtaken between the two loads
      const auto wanted = available - available / 2;
      const auto room = thief.room();
      const auto count = wanted - 1 < room ? wanted : room + 1;
      T* const first = slot(top).load(Atomics::relaxed);       // published by A; kept only if C succeeds
      const auto base = thief.bottom_.load(Atomics::relaxed);  // owner-written
      for (index i = 1; i < count; ++i) {
        T* const item = slot(top + i).load(Atomics::relaxed);    // published by A; kept only if C succeeds
        thief.slot(base + i - 1).store(item, Atomics::relaxed);  // published by A below
      }
      if (top_.compare_exchange_strong(top, top + count, Atomics::acq_rel, Atomics::relaxed)) {  // C, D, E
        if (count == 1) return first;
        if (opaque_.load(Atomics::relaxed) >= top)                  // published by A
          thief.opaque_.store(base + count - 2, Atomics::relaxed);  // owner-written, published by A
        thief.bottom_.store(base + count - 1, Atomics::release);    // A
        return first;
      }
    }
    return nullptr;
  }

  // Takes the `Count` oldest items of a full deque, and passes each to `take`, oldest first. False if thieves have
  // already made room. Owner only.
  template <std::size_t Count, class Take>
  [[nodiscard]] bool evict(Take&& take) noexcept
    requires(fifo && Count <= Capacity)
  {
    auto top = top_.load(Atomics::acquire);                              // E
    if (bottom_.load(Atomics::relaxed) - top != capacity) return false;  // owner-written
    T* items[Count];
    for (std::size_t i = 0; i < Count; ++i)
      items[i] = slot(top + static_cast<index>(i)).load(Atomics::relaxed);  // own pushes; kept only if C succeeds
    const auto next = top + static_cast<index>(Count);
    if (!top_.compare_exchange_strong(top, next, Atomics::acq_rel, Atomics::relaxed)) return false;  // C, D, E
    for (T* item : items) take(*item);
    return true;
  }

  // Takes the `number` youngest items, and passes each to `take`, oldest first. False, and takes none, if there are
  // fewer than twice as many, or nothing was taken at the top since the last time. Meanwhile may_have_items may
  // overlook them. Owner only.
  template <class Take>
  [[nodiscard]] bool take_newest(std::size_t number, Take&& take) noexcept
    requires fifo
  {
    const auto count = static_cast<index>(number);
    const auto bottom = bottom_.load(Atomics::relaxed);                     // owner-written
    const auto before = top_.load(Atomics::relaxed);                        // not below shrunk_at_, which was read
    if (before == shrunk_at_ || bottom - before < 2 * count) return false;  // G
    bottom_.store(bottom - count, Atomics::release);                        // A, G
    shrunk_at_ = top_.fetch_add(0, Atomics::acq_rel);                       // C, E, G
    if (bottom - shrunk_at_ < 2 * count) {
      bottom_.store(bottom, Atomics::release);  // A
      return false;
    }
    for (index i = bottom - count; i < bottom; ++i) take(*slot(i).load(Atomics::relaxed));  // own push
    return true;
  }

  // The number of items ever pushed, without those that take_newest took back. Owner only.
  [[nodiscard]] std::int64_t pushed() const noexcept { return bottom_.load(Atomics::relaxed); }  // owner-written

  // The number of items. For the owner exact except for thefts in progress, for others a hint.
  [[nodiscard]] std::size_t size() const noexcept {
    const auto top = top_.load(Atomics::acquire);        // E
    const auto bottom = bottom_.load(Atomics::seq_cst);  // A, F
    return bottom > top ? static_cast<std::size_t>(bottom - top) : 0;
  }
  // Whether there may be an item. Never false for an item that was pushed before the call and is still there, except
  // during take_newest.
  [[nodiscard]] bool may_have_items() const noexcept { return size() != 0; }

 private:
  using index = std::int64_t;
  template <class U>
  using atomic = typename Atomics::template atomic<U>;

  static constexpr auto capacity = static_cast<index>(Capacity);

  // Adds `item` at the bottom, where there is room. Owner only.
  void put(index bottom, T& item) noexcept {
    slot(bottom).store(&item, Atomics::relaxed);  // published by A
    bottom_.store(bottom + 1, Atomics::release);  // A
  }

  // For the owner. A place that was filled is never emptied, so the pointers may be stale, but are not null.
  template <class Ahead>
  void look_ahead(index top, index bottom, Ahead& ahead) noexcept {
    if constexpr (!std::is_null_pointer_v<Ahead>)
      if (bottom - top > 2 && top >= opaque_.load(Atomics::relaxed))                          // owner-written
        ahead(*slot(top + 1).load(Atomics::relaxed), *slot(top + 2).load(Atomics::relaxed));  // hint
  }

  atomic<T*>& slot(index i) noexcept { return slots_[static_cast<std::size_t>(i) & (Capacity - 1)]; }

  // Owner only.
  index room() const noexcept {
    return capacity - (bottom_.load(Atomics::relaxed) - top_.load(Atomics::acquire));  // D
  }

  alignas(cache_line) atomic<T*> slots_[Capacity]{};  // first, because its offset is added to the index otherwise
  alignas(cache_line) atomic<index> top_{0};
  alignas(cache_line) atomic<index> bottom_{0};
  atomic<index> opaque_{-1};
  index shrunk_at_ = -1;  // owner only: top_ at the last take_newest
};

}  // namespace ulexite::detail
