#include <ulexite/base/controller.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/evloop/timers.hpp>

#include <event2/event.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace ulexite::detail {
namespace {

constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;

// The clock of std::chrono::steady_clock and of the timerfd; read without a system call.
std::int64_t now() noexcept {
  if (controlled_somewhere.load(std::memory_order_relaxed)) [[unlikely]]  // hint
    return controlled_clock_ns();
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * nanoseconds_per_second + time.tv_nsec;
}

}  // namespace

timers::timers(std::size_t shards, struct ::event& substitute)
    : shards_(std::max<std::size_t>(shards, 1)),
      timerfd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      substitute_(substitute) {}

void timers::reserve(std::size_t count) {
  for (shard_state& shard : shards_) {
    std::lock_guard guard(shard.lock);
    shard.heap.reserve(count);
  }
}

void timers::arm(timer_event& timer, std::int64_t deadline, std::size_t shard) noexcept {
  if (shard >= shards_.size()) panic("a timer was armed in shard %zu of %zu", shard, shards_.size());
  deadline = std::max<std::int64_t>(deadline, 1);  // 0 would disarm the timerfd, and INT64_MIN means nobody
  shard_state& home = shards_[shard];
  {
    std::lock_guard guard(home.lock);
    timer.deadline = deadline;
    timer.shard = static_cast<std::uint32_t>(shard);
    home.heap.push(timer);
    home.armed.store(home.heap.size(), std::memory_order_relaxed);  // counter
    // From here on the timer may fire and be destroyed. `earliest` is still the heap's top before this arm, because we
    // hold the lock.
    if (home.earliest.load(std::memory_order_relaxed) <= deadline) return;  // written under this lock
    home.earliest.store(deadline, std::memory_order_seq_cst);               // A
  }
  perturb();
  if (deadline < wake_at_.load(std::memory_order_seq_cst)) advance_alarm(deadline);  // A
}

bool timers::cancel(timer_event& timer) noexcept {
  shard_state& home = shards_[timer.shard];
  std::lock_guard guard(home.lock);
  if (timer.position == timer_event::idle) return false;
  home.heap.remove(timer);
  note_removed(home);
  return true;
}

std::int64_t timers::next_deadline() const noexcept {
  std::int64_t deadline = INT64_MAX;
  for (const shard_state& shard : shards_) {
    deadline = std::min(deadline, shard.earliest.load(std::memory_order_seq_cst));  // B
  }
  return deadline;
}

std::size_t timers::armed() const noexcept {
  std::size_t sum = 0;
  for (const shard_state& shard : shards_) sum += shard.armed.load(std::memory_order_relaxed);  // counter
  return sum;
}

void timers::fire(event_list& ready) noexcept {
  if (next_deadline() == INT64_MAX) return;  // saves reading the clock
  const std::int64_t time = now();
  for (shard_state& shard : shards_) {
    while (shard.earliest.load(std::memory_order_relaxed) <= time) {  // hint: the heap decides, under the lock
      if (!fire_some(shard, time, ready)) break;
    }
  }
}

// Fires a batch, so that a million expired timers do not keep other threads off the shard. True: there are more.
bool timers::fire_some(shard_state& shard, std::int64_t time, event_list& ready) noexcept {
  std::lock_guard guard(shard.lock);
  for (int turn = 0; turn < 64 && shard.heap.earliest() <= time; ++turn) {
    // The claim is called under the lock: a canceller waits for it, and nothing uses the timer afterwards.
    timer_event& timer = shard.heap.pop();
    if (timer.claim(timer)) ready.push(timer);
  }
  note_removed(shard);
  return shard.heap.earliest() <= time;
}

// Called with the shard's lock held.
void timers::note_removed(shard_state& shard) noexcept {
  shard.earliest.store(shard.heap.earliest(), std::memory_order_relaxed);  // it only rises: who misses it wakes early
  shard.armed.store(shard.heap.size(), std::memory_order_relaxed);         // counter
}

bool timers::begin_wait() noexcept {
  std::lock_guard guard(alarm_lock_);
  wake_at_.store(INT64_MAX, std::memory_order_seq_cst);  // B
  perturb();
  const std::int64_t deadline = next_deadline();
  const std::int64_t time = now();
  if (deadline <= time) {
    wake_at_.store(nobody, std::memory_order_relaxed);  // an armer that misses it takes the lock, and sees it there
    return false;
  }
  const bool stands = alarm_ > time && alarm_ <= deadline;  // in the future, so it has not fired yet
  if (!stands) set_alarm(deadline);
  // Only lowers the announcement.
  wake_at_.store(stands ? alarm_ : deadline, std::memory_order_relaxed);  // an armer that misses it takes the lock
  return true;
}

void timers::end_wait() noexcept {
  std::lock_guard guard(alarm_lock_);
  wake_at_.store(nobody, std::memory_order_relaxed);  // an armer that misses it takes the lock, and sees it there
}

// If a thread is still blocked, ensures that it wakes at `deadline`.
void timers::advance_alarm(std::int64_t deadline) noexcept {
  std::lock_guard guard(alarm_lock_);
  if (deadline >= wake_at_.load(std::memory_order_relaxed)) return;  // written under this lock
  set_alarm(deadline);
  wake_at_.store(deadline, std::memory_order_relaxed);  // as in begin_wait
}

// Called with alarm_lock_ held. An alarm in the past fires immediately. INT64_MAX needs no system call: it is only
// requested after the last alarm, and a timerfd that has fired is silent. The substitute may fire some milliseconds
// too early or too late, because libevent reads a clock of kernel ticks. So it never stands.
void timers::set_alarm(std::int64_t deadline) noexcept {
  alarm_ = deadline;
  if (deadline == INT64_MAX) return;
  itimerspec alarm{};
  alarm.it_value.tv_sec = deadline / nanoseconds_per_second;
  alarm.it_value.tv_nsec = deadline % nanoseconds_per_second;
  if (timerfd_settime(timerfd_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr) == 0) return;
  alarm_ = 0;
  const std::int64_t rest = std::max<std::int64_t>(deadline - now(), 0);
  const timeval after{rest / nanoseconds_per_second, rest % nanoseconds_per_second / 1000};
  if (event_add(&substitute_, &after) != 0)
    panic("no alarm at %lld: errno %d", static_cast<long long>(deadline), errno);
}

}  // namespace ulexite::detail
