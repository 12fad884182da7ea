#pragma once

#include <ulexite/fiber/floating_controls.hpp>

#include <pthread.h>
#include <signal.h>

namespace ulexite::detail {

// What a thread of the runtime has from the thread that made the runtime. By itself it would have it from whoever
// happens to start it: the rounding mode of some fiber, the blocked signals of some thread outside.
class inherited_thread_state {
 public:
  inherited_thread_state() noexcept { pthread_sigmask(SIG_SETMASK, nullptr, &blocked_); }

  void adopt() const noexcept {
    floating_.restore();
    pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
  }

 private:
  const floating_controls floating_ = floating_controls::of_thread();
  sigset_t blocked_;
};

}  // namespace ulexite::detail
