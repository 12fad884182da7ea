#pragma once

// Lets a worker wait for the end of the inspection that is under way (inspection.hpp), and of no later one. A dump is
// many inspections in a row. So a worker that waited for a lock would find it taken until the dump's end.
//
//   begin         the inspection has begun. Before it makes its request to the workers.
//   end           it no longer reads fibers, and has withdrawn its request.
//   wait_for_end  a worker waits, which has marked its fiber as running and has seen the request.
//
// A later inspection may be under way when the worker goes on. It leaves the fiber alone, because it sees the fiber
// running. The worker has marked it, and then has read an epoch that is older than the later inspection's begin and
// fence.
//
// State
//   epoch_  twice the number of inspections that have ended; 1 more during an inspection. Written by the inspection,
//           one at a time.
//
// Pairings
//   A  end increments epoch_, release  ->  now loads it, acquire: the fiber runs after the reads.
//   B  The worker marks the fiber, executes a light fence, then loads epoch_. The inspection increments epoch_ in
//      begin, executes a heavy fence, then loads the fiber's phase. Either the worker sees the epoch of this
//      inspection, and waits, or the inspection sees the fiber running.
//
// Checked by tests/model/inspection_epoch_model.cpp.

#include <ulexite/base/atomics.hpp>

namespace ulexite::detail {

template <class Atomics = std_atomics>
class basic_inspection_epoch {
 public:
  // The inspection's.
  void begin() noexcept { epoch_.fetch_add(1, Atomics::relaxed); }  // B, ordered by its fence
  void end() noexcept { epoch_.fetch_add(1, Atomics::release); }    // A
  void wake_workers() noexcept { epoch_.notify_all(); }

  // A worker's. `sleep` may return at any time, and does so soon after the end.
  template <class Sleep>
  void wait_for_end(Sleep&& sleep) const noexcept {
    const unsigned seen = now();
    if (seen % 2 != 0)
      while (now() == seen) sleep(epoch_, seen);
  }

 private:
  [[nodiscard]] unsigned now() const noexcept { return epoch_.load(Atomics::acquire); }  // A, B

  typename Atomics::template atomic<unsigned> epoch_{0};
};

using inspection_epoch = basic_inspection_epoch<>;

}  // namespace ulexite::detail
