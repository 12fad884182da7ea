#pragma once

// A worker that another thread may take over while the worker's fiber is in a system call. Each offer ends in one of
// two ways: its maker withdraws it, or a thread accepts it. An accepted offer gives the worker with all its state.
//
// State
//   offered_   the fiber's record of its thread (own_thread) while the offer stands, or null. The worker's thread
//              stores it, and any thread takes it away.
//
// Pairings
//   A  make stores offered_, release  ->  accept exchanges it, acquire: the new thread sees all of the worker.
//
// Checked by tests/model/handoff_offer_model.cpp.

#include <ulexite/base/atomics.hpp>

namespace ulexite::detail {

template <class Maker, class Atomics = std_atomics>
class handoff_offer {
 public:
  handoff_offer() = default;
  handoff_offer(const handoff_offer&) = delete;
  handoff_offer& operator=(const handoff_offer&) = delete;

  // Offers the worker. From here on its thread must not use it, until it has withdrawn the offer.
  void make(Maker& maker) noexcept { offered_.store(&maker, Atomics::release); }  // A

  // Called by the maker. False: another thread has the worker. By now the worker may have been offered again, by
  // another fiber, and that offer must stand. So the maker is compared.
  [[nodiscard]] bool withdraw(Maker& maker) noexcept {
    Maker* mine = &maker;
    return offered_.compare_exchange_strong(mine, nullptr, Atomics::relaxed, Atomics::relaxed);  // own store
  }

  // Any thread. True: the caller has the worker.
  [[nodiscard]] bool accept() noexcept { return offered_.exchange(nullptr, Atomics::acquire) != nullptr; }  // A

  // Whether the worker is offered. Any thread.
  [[nodiscard]] bool stands() const noexcept { return offered_.load(Atomics::relaxed) != nullptr; }  // hint

 private:
  typename Atomics::template atomic<Maker*> offered_{nullptr};
};

}  // namespace ulexite::detail
