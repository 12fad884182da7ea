#include <ulexite/base/error.hpp>
#include <ulexite/sync/future.hpp>

namespace ulexite::detail {

void throw_future_error(std::future_errc code) { throw std::future_error(code); }

void future_state_base::throw_if_satisfied() const {
  if (ready_.is_set()) throw_future_error(std::future_errc::promise_already_satisfied);
}

void future_state_base::fail(std::exception_ptr exception) {
  if (!exception) throw usage_error("promise::set_exception: a null exception_ptr");
  satisfy([&] { failure_ = std::move(exception); });
}

void future_state_base::abandon() noexcept {
  const no_yield_scope here;
  const std::lock_guard lock(setting_);
  if (ready_.is_set()) return;
  broken_ = true;
  ready_.set();
}

void future_state_base::mark_retrieved() {
  if (retrieved_.exchange(true, std::memory_order_relaxed))  // guards nothing else
    throw_future_error(std::future_errc::future_already_retrieved);
}

bool future_state_base::wait(std::int64_t deadline) {
  if (!ready_.is_set()) check_may_wait(this_agent(), wait_kind::future);
  return ready_.wait_quietly(this_agent(), cancellable::no, deadline, wait_kind::future) == wake_reason::notified;
}

void future_state_base::rethrow_failure() {
  if (broken_) throw_future_error(std::future_errc::broken_promise);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace ulexite::detail
