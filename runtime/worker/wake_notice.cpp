#include <ulexite/runtime/worker/wake_notice.hpp>

#include <ctime>
#include <utility>

namespace ulexite::detail {
namespace {

// Nanoseconds that the calling thread has computed. A system call.
std::int64_t thread_time() noexcept {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

bool wake_notice::too_soon() const noexcept { return to_be_judged_ && thread_time() - computed_ < tuning::worthwhile; }

void wake_notice::note_slot_wake() noexcept {
  to_be_judged_ = true;
  computed_ = thread_time();
}

void wake_notice::judge_slot_wake(std::int64_t now, bool alone) noexcept {
  if (std::exchange(to_be_judged_, false)) {
    const bool was_worth_it = thread_time() - computed_ >= tuning::worthwhile;
    pause_ = tuning::next_pause(was_worth_it, pause_, tuning::shortest_pause, tuning::longest_slot_pause);
    judged_ = now;
  }
  set_slot_due(!alone && now - judged_ >= pause_);
}

}  // namespace ulexite::detail
