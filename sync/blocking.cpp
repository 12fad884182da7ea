#include <ulexite/base/error.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/blocking.hpp>

namespace ulexite::detail {

void blocking_call::run_and_wait() {
  agent& self = this_agent();
  check_may_wait(self, wait_kind::blocking);
  if (self.kind != agent_kind::fiber) return call();
  throw_if_stopped(self);
  if (const yield_point at_exit; controlled()) return call();  // there is no other thread
  blocking_pool& pool = *this_runtime_state().blocking;
  pool.submit(*this);
  if (done_.wait_quietly(self, cancellable::yes, no_deadline, wait_kind::blocking) == wake_reason::cancelled) {
    if (pool.withdraw(*this)) throw_cancelled();
    done_.wait_quietly(self, cancellable::no, no_deadline, wait_kind::blocking);
  }
  if (failure_) std::rethrow_exception(failure_);
}

void* blocking_call::run() noexcept {
  try {
    call();
  } catch (...) {
    failure_ = std::current_exception();
  }
  return nullptr;
}

}  // namespace ulexite::detail
