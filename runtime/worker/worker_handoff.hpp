#pragma once

#include <ulexite/fiber/context.hpp>

#include <optional>

namespace ulexite::detail {

class brief_calls;
class task;

// The thread that a fiber has for itself while another thread runs the worker. Its base is the thread's own part in a
// switch. At the end of the call the thread uses it to switch to its main stack, without a worker. The object is in the
// frame of the call, on the fiber's stack.
struct own_thread : switch_thread {
  task* who = nullptr;                // the fiber
  context* main = nullptr;            // of the thread
  brief_calls* counted_by = nullptr;  // of a brief call
};

// While it exists, the calling fiber's thread is a plain one: another thread runs the worker.
class worker_handoff {
 public:
  worker_handoff() noexcept;
  worker_handoff(const worker_handoff&) = delete;
  worker_handoff& operator=(const worker_handoff&) = delete;
  ~worker_handoff();

 private:
  std::optional<own_thread> thread_;  // none: the thread has not changed
};

}  // namespace ulexite::detail
