#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/branch.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/suspend.hpp>

namespace ulexite::detail {

task* branch::start(core& home, scheduler& taker) noexcept {
  result_task<void>* made;
  try {
    made = &make_(home, *this);
  } catch (...) {  // no memory, or max_fibers
    tell(home, given_back);
    return nullptr;
  }
  made->id = taker.next_id();
  made->agent().deadline = deadline_;
  std_atomics::light_fence();  // core.hpp A
  if (home.stop_requested()) made->agent().word.request_stop();
  tell(home, reinterpret_cast<std::uintptr_t>(made));
  return made;
}

// The last that the taker does with the branch, but to call its function. Whoever waits for the news goes to the shared
// queue: a searching worker looks there, but not at what it has itself.
void branch::tell(core& home, std::uintptr_t news) noexcept {
  perturb();
  const auto waiter = reinterpret_cast<agent*>(news_.exchange(news, std::memory_order_acq_rel));  // A, B
  if (waiter && waiter->word.claim(wake_reason::notified) == claim_result::won) home.inject(waiter->fiber());
}

// Between its theft and its start a branch has no fiber yet that could be waited for.
std::uintptr_t branch::news() noexcept {
  if (const auto told = news_.load(std::memory_order_acquire)) return told;  // A
  agent& self = this_agent();
  self.word.prepare();
  std::uintptr_t none = 0;
  perturb();
  if (news_.compare_exchange_strong(none, reinterpret_cast<std::uintptr_t>(&self), std::memory_order_acq_rel,
                                    std::memory_order_acquire))  // A, B
    suspend_prepared(self, cancellable::no);
  else
    static_cast<void>(self.word.retract());
  return news_.load(std::memory_order_acquire);  // A
}

result_task<void>* branch::wait(bool stop) noexcept {
  const std::uintptr_t told = news();
  if (told == given_back) return nullptr;
  auto& elsewhere = *reinterpret_cast<result_task<void>*>(told);
  if (!stop && !elsewhere.join(no_deadline, cancellable::yes)) stop = this_agent().word.stop_requested();
  if (stop) elsewhere.request_stop();
  elsewhere.join();
  return &elsewhere;
}

}  // namespace ulexite::detail
