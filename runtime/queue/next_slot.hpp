#pragma once

// A place for one item. Its owner fills and empties it without an exchange, and others may steal from it now and then.
// The owner's take and a theft exclude each other: the take has a light fence, and the theft a heavy one (fences.hpp).
//
// State
//   item_      the item, or null. Filled by the owner only, when it is empty; emptied by the owner and by thieves.
//   taking_    the owner is about to empty it. Written by the owner.
//   stealing_  a thief is about to empty it. Written by the thief that found it false.
//
// Pairings
//   A  put stores item_, release  ->  steal exchanges it out, acquire: the thief sees the item.
//   B  take sets taking_, then loads stealing_; steal sets stealing_, then loads taking_. The fences are in between.
//      Either the owner sees the theft and takes by exchange, as the thief does; or the thief waits until the owner is
//      done.
//   C  take clears taking_, release  ->  steal loads it, acquire: it sees that the item was taken.
//   D  steal clears stealing_, release  ->  take and the next steal read it, acquire: they see that the item was taken.
//
// Checked by tests/model/next_slot_model.cpp.

#include <ulexite/base/atomics.hpp>

namespace ulexite::detail {

template <class T, class Atomics = std_atomics>
class basic_next_slot {
 public:
  // Whether there is an item. Exact if the owner sees it empty, otherwise a hint. Any thread.
  [[nodiscard]] bool filled() const noexcept { return item_.load(Atomics::relaxed); }  // hint

  // Fills the slot, which is empty. Owner only.
  void put(T& item) noexcept { item_.store(&item, Atomics::release); }  // A

  // Empties the slot, and returns the item, or null. Owner only.
  [[nodiscard]] T* take() noexcept {
    taking_.store(true, Atomics::relaxed);  // ordered by the fence
    Atomics::light_fence();                 // B
    T* item;
    if (stealing_.load(Atomics::acquire)) [[unlikely]] {  // D, ordered by the fence
      item = item_.exchange(nullptr, Atomics::relaxed);   // own put
    } else {
      item = item_.load(Atomics::relaxed);     // own put
      item_.store(nullptr, Atomics::relaxed);  // published by C
    }
    taking_.store(false, Atomics::release);  // C
    return item;
  }

  // Empties the slot from another thread, at the cost of a heavy fence. Also null if another thread steals from it at
  // this moment.
  [[nodiscard]] T* steal() noexcept {
    if (stealing_.exchange(true, Atomics::acquire)) return nullptr;                                 // D
    Atomics::heavy_fence();                                                                         // B
    for (unsigned attempt = 0; taking_.load(Atomics::acquire); ++attempt) Atomics::pause(attempt);  // C
    T* const item = item_.exchange(nullptr, Atomics::acquire);                                      // A
    stealing_.store(false, Atomics::release);                                                       // D
    return item;
  }

 private:
  typename Atomics::template atomic<T*> item_{nullptr};
  typename Atomics::template atomic<bool> taking_{false};
  typename Atomics::template atomic<bool> stealing_{false};
};

template <class T>
using next_slot = basic_next_slot<T>;

}  // namespace ulexite::detail
