#pragma once

// Initialisation by the first caller, with std::call_once's interface.

#include <ulexite/base/error.hpp>
#include <ulexite/sync/mutex.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace ulexite {

// Remembers whether a call_once has succeeded. It may be destroyed after every call with it has returned, if there will
// be no other.
class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& function, Args&&... args);

  template <class Function>
  void call(Function&& function) {
    detail::agent* const self = &detail::this_agent();
    if (initialiser_.load(std::memory_order_relaxed) == self)  // only the caller itself could have stored this value
      throw usage_error("call_once was called by its own initialiser");
    const std::lock_guard lock(guard_);
    if (done_.load(std::memory_order_relaxed)) return;    // written with guard_ held
    initialiser_.store(self, std::memory_order_relaxed);  // matters to the caller only
    const end_of_call end{initialiser_};
    function();
    done_.store(true, std::memory_order_release);  // A
  }

  struct end_of_call {
    std::atomic<detail::agent*>& initialiser;
    ~end_of_call() { initialiser.store(nullptr, std::memory_order_relaxed); }  // matters to the caller only
  };

  // State
  //   done_         the initialiser has returned. Set once, with guard_ held.
  //   initialiser_  the agent that calls its function now, or null. Written by that agent with guard_ held. Another
  //                 agent may read any value except its own.
  //
  // Pairings
  //   A  call_once stores done_, release, after the initialiser has returned  ->  every call_once loads it, acquire: it
  //      sees all writes of the initialiser.
  std::atomic<bool> done_{false};
  std::atomic<detail::agent*> initialiser_{nullptr};
  mutex guard_;  // held by the initialiser
};

// Calls function(args...) unless a call with this flag has succeeded before. Waits while another caller's function
// runs. If this function throws, its caller gets the exception, and one of the waiting callers tries next. The function
// may wait. Not a cancellation point itself. Throws the function's exception, and usage_error if the function calls
// call_once with its own flag. Fibers and plain threads may use a flag at the same time.
template <class F, class... Args>
void call_once(once_flag& flag, F&& function, Args&&... args) {
  if (flag.done_.load(std::memory_order_acquire)) [[likely]]  // A
    return;
  flag.call([&] { std::invoke(std::forward<F>(function), std::forward<Args>(args)...); });
}

}  // namespace ulexite
