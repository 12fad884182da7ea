#pragma once

// The fibers that an inspection holds (inspection.hpp), as a range of addresses: as long as it does, none of them that
// is fresh or suspended begins to run. Other fibers run on. A worker looks here only while it is asked to
// (request::inspected), so this costs nothing on the path of a switch.
//
//   hold              the inspection holds these fibers, and releases those before. Its heavy fence follows. Then a
//                     fiber whose phase is not `running` stays as it is.
//   wait_while_held   a worker, which has made the fiber `running`, waits before it switches to its stack.
//
// State
//   first_, size_   the range; of size 0: none. Written by the inspection, one at a time. Between two ranges a worker
//                   may see one half of each, and wait a little for nothing.
//
// Pairings
//   A  The worker makes the fiber `running`, then loads the request, then the range. The inspection sets both, then
//      loads the phase. The worker has a light fence after its store (scheduler.cpp), and the inspection a heavy one
//      before its load. Either the inspection sees the fiber running, and leaves it alone, or the worker sees the
//      request and this range or a later one.
//   B  hold stores both halves, release  ->  wait_while_held loads them, acquire: the fiber runs after the inspection's
//      use of it. A worker that comes so late that the request is withdrawn sees the same by interrupts.hpp A.
//
// Checked by tests/model/held_range_model.cpp.

#include <ulexite/base/atomics.hpp>

#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

template <class Atomics = std_atomics>
class basic_held_range {
 public:
  // The inspection's: the fibers whose agents are in these `size` bytes.
  void hold(const void* first, std::size_t size) noexcept {
    first_.store(address(first), Atomics::release);  // A, ordered by its fence; B
    size_.store(size, Atomics::release);             // A, B
  }
  // A worker's, or the inspection's.
  [[nodiscard]] bool holds(const void* agent) const noexcept {
    return address(agent) - first_.load(Atomics::acquire) < size_.load(Atomics::acquire);  // A, B
  }
  // A worker's.
  void wait_while_held(const void* agent) const noexcept {
    for (unsigned attempt = 0; holds(agent); ++attempt) Atomics::pause(attempt);
  }

 private:
  static std::uintptr_t address(const void* of) noexcept { return reinterpret_cast<std::uintptr_t>(of); }

  typename Atomics::template atomic<std::uintptr_t> first_{0};
  typename Atomics::template atomic<std::size_t> size_{0};
};

using held_range = basic_held_range<>;

}  // namespace ulexite::detail
