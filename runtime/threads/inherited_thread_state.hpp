#pragma once

#include <ulexite/fiber/floating_controls.hpp>

#include <pthread.h>
#include <signal.h>

namespace ulexite::detail {

// The state that every thread of a runtime takes from the thread that made the runtime. Otherwise a thread would
// inherit it from its starter: the rounding mode of some fiber, or the blocked signals of some thread outside.
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
