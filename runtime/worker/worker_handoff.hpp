#pragma once

#include <ulexite/fiber/context.hpp>

namespace ulexite::detail {

class task;

// While it exists, the calling fiber's thread is a plain one: another thread runs the worker.
// Its base is the thread's own part in a switch. At the end of the call the thread uses it to switch to its main stack,
// without a worker. The object is in the frame of block_in_place, on the fiber's stack.
class worker_handoff : private switch_thread {
 public:
  worker_handoff() noexcept;
  worker_handoff(const worker_handoff&) = delete;
  worker_handoff& operator=(const worker_handoff&) = delete;
  ~worker_handoff();

 private:
  friend class scheduler;

  // Written by begin_handoff.
  task* who_ = nullptr;      // null: the thread has not changed
  context* main_ = nullptr;  // of the thread
};

}  // namespace ulexite::detail
