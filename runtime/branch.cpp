#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/branch.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/suspend.hpp>

namespace ulexite::detail {

task* branch::start(core& home) noexcept {
  result_task<void>* made;
  try {
    made = &make_(home, *this);
  } catch (...) {  // no memory, or max_fibers
    tell(home, given_back);
    return nullptr;
  }
  prepare(*made);
  made->make_branch_of(forking_->fiber());
  made->agent().deadline = deadline_;
  made->agent().shielded = shielded_;
  tell(home, reinterpret_cast<std::uintptr_t>(made));
  return made;
}

// The last that the taker does with the branch, but to call its function. Whoever waits for the news goes to the shared
// queue: a searching worker looks there, but not at what it has itself.
void branch::tell(core& home, std::uintptr_t news) noexcept {
  perturb();
  if (agent* const waiter = news_.tell(news)) home.inject(waiter->fiber());
}

std::uintptr_t branch::news() noexcept {
  if (const auto told = news_.told()) return told;
  agent& self = this_agent();
  perturb();
  if (news_.wait_for(self)) suspend_prepared(self, cancellable::no);
  return news_.told();
}

result_task<void>* branch::wait(bool stop) noexcept {
  const std::uintptr_t told = news();
  if (told == given_back) return nullptr;
  auto& elsewhere = *reinterpret_cast<result_task<void>*>(told);
  if (!stop && !elsewhere.join(no_deadline, cancellable::yes)) stop = this_agent().word.stop_requested();
  if (stop) elsewhere.request_stop();
  elsewhere.join();
  // Behind our back only the runtime asks a branch to stop, and asks us next: what the branch throws is then the end of
  // a fiber that was asked to stop, and no failure of it.
  if (!stop && elsewhere.agent().word.stop_requested()) this_agent().word.request_stop();
  return &elsewhere;
}

}  // namespace ulexite::detail
