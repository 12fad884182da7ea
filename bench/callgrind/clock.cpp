// Preloaded under callgrind: a clock that advances only when it is read, and waits that only a notification ends. Under
// valgrind a program is some fifty times slower. So timed actions (polls, the monitor's ticks) would happen fifty times
// as often, and differently in each run. With this clock two runs differ by some hundred instructions.

#include <atomic>
#include <cstdint>
#include <ctime>

#include <pthread.h>

extern "C" int clock_gettime(clockid_t, timespec* time) noexcept {
  constexpr std::int64_t second = 1'000'000'000, step = 500;
  static std::atomic<std::int64_t> clock{1000 * second};
  const std::int64_t now = clock.fetch_add(step, std::memory_order_relaxed);  // a counter, orders nothing
  time->tv_sec = now / second;
  time->tv_nsec = now % second;
  return 0;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t, const timespec*) {
  return pthread_cond_wait(condition, mutex);
}
