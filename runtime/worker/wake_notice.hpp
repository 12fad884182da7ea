#pragma once

// The duties at a wake of a fiber by this worker: to wake another worker for it, or to record it. Owner only.
// Thieves also write the part `pushes`.
//
// The fiber that fills the slot may compute for long, and then another worker should take the slot's fiber. Whether
// it does shows when it leaves the worker, or wakes the next: so a visit is due then. If it did not, there is a pause
// before another worker is woken again, twice as long each time. Only the time that the thread has computed counts, not
// the clock's. A worker can lose its processor, perhaps to the worker that it woke, and its fibers become
// slower if they are separated.

#include <ulexite/runtime/worker/tuning.hpp>
#include <ulexite/runtime/worker/wake_hold.hpp>

#include <cstdint>

namespace ulexite::detail {

class wake_notice {
 public:
  wake_hold pushes;  // whether another worker is woken for a push

  // Whether anything is due, with one load for all.
  [[nodiscard]] bool any() const noexcept { return bits_ != 0; }

  [[nodiscard]] bool traced() const noexcept { return (bits_ & traced_bit) != 0; }
  void set_traced(bool traced) noexcept { set(traced_bit, traced); }

  // Whether another worker is to be woken for a filled slot.
  [[nodiscard]] bool slot_due() const noexcept { return (bits_ & slot_bit) != 0; }
  void set_slot_due(bool due) noexcept { set(slot_bit, due); }
  // Whether the fiber that filled the slot before has computed too little yet to wake another worker. A system call.
  [[nodiscard]] bool too_soon() const noexcept;
  // Another worker was woken for the slot: this is to be judged.
  void note_slot_wake() noexcept;
  // Judges that wake, if there is one to judge, and sets when the next is due. `alone`: never.
  void judge_slot_wake(std::int64_t now, bool alone) noexcept;

 private:
  static constexpr std::uint8_t slot_bit = 1, traced_bit = 2;

  void set(std::uint8_t bit, bool on) noexcept { bits_ = static_cast<std::uint8_t>((bits_ & ~bit) | (on ? bit : 0)); }

  std::uint8_t bits_ = 0;
  bool to_be_judged_ = false;  // the fiber that filled the slot has not left since
  std::int64_t computed_ = 0;  // ns that the thread had computed at the last wake
  std::int64_t judged_ = 0;    // when the last wake was judged
  std::int64_t pause_ = 0;     // ns from then to the next wake
};

}  // namespace ulexite::detail
