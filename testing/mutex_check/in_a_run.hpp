#pragma once

// In a run of ulexite::testing a fiber's std::mutex and std::condition_variable are operations: the run has a
// ulexite::mutex and a condition variable in the place of each, by address. The C library's own objects stay untouched,
// because a failed run abandons its fibers with what they hold. So other threads are not held off.

#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <unordered_map>

namespace ulexite::testing {
// The number of the calling thread's run (testing/driver.cpp). A program without explorations lacks it.
[[gnu::weak]] std::uint64_t this_run() noexcept;
}  // namespace ulexite::testing

namespace ulexite::detail {
namespace {

// The mutex of a run. Each function returns what the C library's would.
class run_mutex {
 public:
  template <class Lock>
  int lock_by(const pthread_mutex_t& of, int refused, Lock&& take) noexcept {
    const std::uint64_t self = this_scheduler()->running()->id;
    if (owner_ != self) {
      try {
        if (!take(own_)) return refused;
      } catch (const std::exception&) {  // the wait is forbidden, as under a no_suspend_scope
        return EDEADLK;
      }
      owner_ = self;
    } else if (!is_recursive(of)) {
      return refused == EBUSY ? EBUSY : EDEADLK;
    }
    ++depth_;
    return 0;
  }
  int release() noexcept {
    if (owner_ != this_scheduler()->running()->id) return EPERM;
    if (--depth_ > 0) return 0;
    owner_ = 0;
    own_.unlock();
    return 0;
  }

  // For condition_variable_any.
  void lock() {
    own_.lock();
    owner_ = this_scheduler()->running()->id;
    depth_ = 1;
  }
  void unlock() noexcept { release(); }

 private:
  static bool is_recursive([[maybe_unused]] const pthread_mutex_t& of) noexcept {
#ifdef __GLIBC__
    return (of.__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE;
#else
    return false;
#endif
  }

  timed_mutex own_;
  std::uint64_t owner_ = 0;
  unsigned depth_ = 0;
};

// What stands for the objects of a run. The next run begins with nothing.
struct stand_ins {
  std::uint64_t run = 0;
  std::unordered_map<const void*, run_mutex> mutexes;
  std::unordered_map<const void*, condition_variable_any> conditions;

  static stand_ins& here() {
    static thread_local stand_ins own;
    if (const std::uint64_t now = testing::this_run(); own.run != now) {
      own.mutexes.clear();
      own.conditions.clear();
      own.run = now;
    }
    return own;
  }
};

// Whether the caller is a fiber of a run, and not the run's own code.
bool in_a_run() noexcept {
  if (!controlled() || !testing::this_run) return false;
  const scheduler* const here = this_scheduler();
  return here && here->running();
}

run_mutex& stand_in(const pthread_mutex_t* of) { return stand_ins::here().mutexes[of]; }
condition_variable_any& stand_in(const pthread_cond_t* of) { return stand_ins::here().conditions[of]; }

// The time of the run that is left until `until` of another clock.
std::chrono::nanoseconds left_until(clockid_t clock, const timespec& until) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(until.tv_sec - now.tv_sec) + std::chrono::nanoseconds(until.tv_nsec - now.tv_nsec);
}

int lock_in_run(pthread_mutex_t* which) noexcept {
  return stand_in(which).lock_by(*which, 0, [](timed_mutex& own) { return own.lock(), true; });
}
int try_lock_in_run(pthread_mutex_t* which) noexcept {
  return stand_in(which).lock_by(*which, EBUSY, [](timed_mutex& own) { return own.try_lock(); });
}
int lock_in_run_until(pthread_mutex_t* which, clockid_t clock, const timespec* until) noexcept {
  const auto left = left_until(clock, *until);
  return stand_in(which).lock_by(*which, ETIMEDOUT, [=](timed_mutex& own) { return own.try_lock_for(left); });
}

int wait_in_run(pthread_cond_t* which, pthread_mutex_t* with) noexcept {
  stand_in(which).wait(stand_in(with));
  return 0;
}
// Not a cancellation point, as the C library's.
int wait_in_run_until(pthread_cond_t* which, pthread_mutex_t* with, clockid_t clock, const timespec* until) noexcept {
  const shield from_stops;
  const auto result = stand_in(which).wait_for(stand_in(with), left_until(clock, *until));
  return result == std::cv_status::timeout ? ETIMEDOUT : 0;
}

}  // namespace
}  // namespace ulexite::detail
