#include <ulexite/base/error.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/blocking.hpp>

namespace ulexite::detail {

bool blocking_call::begin() {
  agent& self = this_agent();
  check_may_wait(self, wait_kind::blocking);
  if (self.kind != agent_kind::fiber) return call(), false;
  throw_if_stopped(self);
  if (const yield_point at_exit; controlled()) return call(), false;  // there is no other thread
  this_runtime_state().blocking->submit(*this);
  return true;
}

bool blocking_call::withdraw() noexcept { return this_runtime_state().blocking->withdraw(*this); }

void blocking_call::wait_or_withdraw() {
  agent& self = this_agent();
  if (done_.wait_quietly(self, cancellable::yes, no_deadline, wait_kind::blocking) != wake_reason::cancelled) return;
  if (withdraw()) throw_cancelled();
  done_.wait_quietly(self, cancellable::no, no_deadline, wait_kind::blocking);
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
