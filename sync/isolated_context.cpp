#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/task/unhandled.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/isolated_context.hpp>

#include <pthread.h>

namespace ulexite {

// Its thread may not have been assigned yet when the body runs, so the agents are compared.
bool isolated_context::is_on_its_thread() noexcept {
  const std::lock_guard lock(guard_);
  return who_ == &detail::this_agent();
}

isolated_context::~isolated_context() {
  if (is_on_its_thread()) detail::panic("~isolated_context was called on its own thread, and would wait for itself");
  request_stop();
  static_cast<void>(done_.wait_quietly(detail::this_agent(), detail::cancellable::no, detail::no_deadline,
                                       detail::wait_kind::context));
  thread_.join();
  if (!failure_ || failure_known_.load(std::memory_order_relaxed)) return;  // ordered by done_
  detail::fiber_identity who;
  who.name = name_.c_str();
  detail::report_unhandled(*runtime_.tasks->handler(), who, failure_);
}

void isolated_context::join() {
  if (is_on_its_thread())
    throw usage_error("isolated_context::join was called on its own thread, and would wait for itself");
  detail::check_may_wait(detail::this_agent(), detail::wait_kind::context);
  static_cast<void>(done_.wait_quietly(detail::this_agent(), detail::cancellable::no, detail::no_deadline,
                                       detail::wait_kind::context));
  if (!failure_) return;
  failure_known_.store(true, std::memory_order_relaxed);  // several callers may
  std::rethrow_exception(failure_);
}

void isolated_context::request_stop() noexcept {
  detail::run_stop_callbacks(stop_);
  const std::lock_guard lock(guard_);
  if (!who_) return;
  who_->word.request_stop();
  detail::std_atomics::heavy_fence();  // wait_word.hpp C
  if (who_->word.cancel()) detail::resume(*who_);
}

void isolated_context::enter() {
  ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
  detail::set_spawn_runtime_of_thread(&runtime_);
  const std::lock_guard lock(guard_);
  who_ = &detail::this_agent();
  if (stop_.stop_requested()) who_->word.request_stop();
}

void isolated_context::leave() noexcept {
  detail::set_spawn_runtime_of_thread(nullptr);
  {
    const std::lock_guard lock(guard_);
    who_ = nullptr;
  }
  done_.set();
}

}  // namespace ulexite
