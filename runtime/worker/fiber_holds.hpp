#pragma once

// Keeps suspended fibers from running while the monitor works on the unused part of their stacks. Other fibers run on.
// A worker looks here only while the monitor asks it to (request::held), so this costs nothing on the path of a switch.
//
//   hold              the monitor wants the fiber to stay suspended. The heavy fence follows, one for many fibers. Then
//                     basic_fiber_state::is_suspended says whether it does.
//   let_go            the monitor no longer uses that fiber's stack.
//   wait_while_held   a worker, which has made the fiber `running`, waits before it switches to its stack.
//
// State
//   places_   the fibers that the monitor wants to hold; null: none. Written by the monitor. A worker that is asked to
//             look sees the present value, or its fiber is not held; see A.
//
// Pairings
//   A  The worker makes the fiber `running`, then loads the request, then places_. The monitor sets the request and
//      places_, then loads the phase. The worker has a light fence after its store (scheduler.cpp), and the monitor a
//      heavy one before its load. Either the monitor sees the fiber running, and leaves its stack alone, or the worker
//      sees the request and the place, and waits.
//   B  let_go stores null, release  ->  wait_while_held loads it, acquire: the fiber runs after the use of its stack. A
//      worker that comes so late that the request is withdrawn sees the same by interrupts.hpp A.
//
// Checked by tests/model/fiber_holds_model.cpp.

#include <ulexite/base/atomics.hpp>

#include <cstddef>

namespace ulexite::detail {

template <class Atomics = std_atomics, std::size_t Places = 16>
class basic_fiber_holds {
 public:
  static constexpr std::size_t places = Places;

  // The monitor's.
  void hold(std::size_t place, const void* fiber) noexcept {
    places_[place].store(fiber, Atomics::relaxed);  // ordered by A's fence
  }
  void let_go(std::size_t place) noexcept { places_[place].store(nullptr, Atomics::release); }  // B

  // A worker's.
  void wait_while_held(const void* fiber) const noexcept {
    for (const auto& place : places_)
      for (unsigned attempt = 0; place.load(Atomics::acquire) == fiber; ++attempt) Atomics::pause(attempt);  // A, B
  }

 private:
  typename Atomics::template atomic<const void*> places_[Places]{};
};

using fiber_holds = basic_fiber_holds<>;

}  // namespace ulexite::detail
