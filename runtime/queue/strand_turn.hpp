#pragma once

// The member of a strand that has the turn. Only this member may run. Checked by tests/model/strand_model.cpp.
//
// State, all guarded by lock_
//   busy_        a member runs, or the strand is taken for one.
//   taken_for_   the member that the strand is taken for while it is on its way to a worker; else null.
//   waiting_     members that were dispatched while another had the turn.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/spin_lock.hpp>

#include <mutex>

namespace ulexite::detail {

template <class Member, class Atomics = std_atomics>
class strand_turn {
 public:
  // A member was dispatched. Returns whether it may run; if not, it waits here.
  [[nodiscard]] bool try_acquire(Member& member) noexcept {
    const std::lock_guard lock(lock_);
    if (busy_ && taken_for_ != &member) {
      waiting_.push(member);
      return false;
    }
    taken_for_ = nullptr;
    busy_ = true;
    return true;
  }

  // The running member has left its stack. Returns the next to run, or null, and then the strand is free.
  [[nodiscard]] Member* release() noexcept {
    const std::lock_guard lock(lock_);
    Member* const next = waiting_.pop();
    busy_ = next != nullptr;
    return next;
  }

  // The member that release has returned runs later, or elsewhere: the caller makes it runnable after this. The strand
  // stays taken for it.
  void pass_to(Member& member) noexcept {
    const std::lock_guard lock(lock_);
    taken_for_ = &member;
  }

 private:
  basic_spin_lock<Atomics> lock_;
  bool busy_ = false;
  Member* taken_for_ = nullptr;
  intrusive_queue<Member> waiting_;
};

}  // namespace ulexite::detail
