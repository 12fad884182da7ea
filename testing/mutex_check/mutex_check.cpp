// Reports a std::mutex that a fiber holds over a wait. Such a mutex belongs to the thread. But the fiber may continue
// on another thread, or another fiber of the worker may lock the mutex again. Link ulexite::mutex_check, or load it by
// LD_PRELOAD. It replaces pthread_mutex_lock, pthread_rwlock_rdlock and their kin. So it sees std::mutex, and
// std::shared_mutex with its readers.
//
// It detects a suspension between lock and unlock because the worker's count of dispatches has grown, or the worker is
// another. The switch itself is unchanged. It checks at the unlock, and when a caller finds the mutex locked, before
// the caller blocks the worker for ever.
//
// It reports each place of locking once, on stderr. With ULEXITE_MUTEX_CHECK=abort in the environment the process then
// ends.
//
// In a run of ulexite::testing it reports nothing. There it makes std::mutex and std::condition_variable operations,
// and std::chrono::steady_clock the run's (in_a_run.hpp).

#include "in_a_run.hpp"

#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace ulexite::detail {
namespace {

// A holder of a mutex, the place of its lock, and its worker's count at that time. Only the holder writes the fields.
// A caller that finds the mutex locked reads them as a hint. Each reader of a lock has its own.
struct holding {
  std::atomic<const void*> mutex{nullptr};
  std::atomic<const scheduler*> worker{nullptr};
  std::atomic<std::uint64_t> dispatches{0};
  std::atomic<std::uint64_t> fiber{0};
  std::atomic<const void*> caller{nullptr};
};

// Mutexes that fibers hold, by address. In a full bucket a mutex is not watched.
constexpr std::size_t buckets = 4096, ways = 8;
std::array<std::array<holding, ways>, buckets> held;  // NOLINT

std::array<holding, ways>& bucket_of(const void* mutex) noexcept {
  return held[(reinterpret_cast<std::uintptr_t>(mutex) >> 4) * 11400714819323198485U >> 52];
}

// A worker's count of dispatches only grows. Almost all accesses are relaxed. The fiber that wrote a value reads it,
// and the scheduler orders that between workers; for other readers it is a hint. The pair A keeps the fields of one
// holder from those of the next. By B a caller that sees the number of a fiber sees its other fields.
constexpr auto relaxed = std::memory_order_relaxed;

bool was_suspended(const holding& h, const scheduler* worker) noexcept {
  return h.worker.load(relaxed) != worker || h.dispatches.load(relaxed) != worker->counters().dispatches.get();
}

bool told_already(const void* caller) noexcept {
  static std::array<std::atomic<const void*>, 64> told;
  for (auto& place : told) {
    const void* expected = nullptr;
    if (place.compare_exchange_strong(expected, caller, relaxed, relaxed)) return false;
    if (expected == caller) return true;
  }
  return true;
}

std::string_view wish() noexcept {
  const char* const given = std::getenv("ULEXITE_MUTEX_CHECK");
  return given ? given : "";
}

[[gnu::constructor]] void check_wish() noexcept {
  if (!wish().empty() && wish() != "abort") warn("ULEXITE_MUTEX_CHECK=%s is not abort: it is ignored", wish().data());
}

[[gnu::cold, gnu::noinline]] void report(const holding& h, const char* what, const void* caller) noexcept {
  if (told_already(h.caller.load(relaxed))) return;
  try {
    const std::string text = "ulexite: a mutex that belongs to a thread was held over a wait: fiber #" +
                             std::to_string(h.fiber.load(relaxed)) + " locked it at\n    " +
                             describe_frame(h.caller.load(relaxed)) + "\n  " + what + "\n    " +
                             describe_frame(caller) + "\n  ulexite::mutex may be held over a wait\n";
    std::fputs(text.c_str(), stderr);
  } catch (...) {
    std::fputs("ulexite: a mutex that belongs to a thread was held over a wait\n", stderr);
  }
  if (wish() == "abort") std::abort();
}

// The worker of the calling fiber; null on a plain thread, or outside a fiber.
const scheduler* fibers_worker() noexcept {
  const scheduler* const here = this_scheduler();
  return here && here->running() ? here : nullptr;
}

void note(const void* mutex, const void* caller) noexcept {
  const scheduler* const worker = fibers_worker();
  if (!worker) return;
  for (holding& h : bucket_of(mutex)) {
    const void* expected = nullptr;
    if (!h.mutex.compare_exchange_strong(expected, mutex, std::memory_order_acquire, relaxed)) continue;  // A
    h.worker.store(worker, relaxed);
    h.dispatches.store(worker->counters().dispatches.get(), relaxed);
    h.caller.store(caller, relaxed);
    h.fiber.store(worker->running()->id, std::memory_order_release);  // B
    return;
  }
}

void remove(holding& of) noexcept {
  of.fiber.store(0, relaxed);
  of.mutex.store(nullptr, std::memory_order_release);  // A
}

// In block_in_place a fiber is a plain thread. So the holding may be its own if there is no other.
void forget_on_thread(const void* mutex) noexcept {
  holding* found = nullptr;
  for (holding& h : bucket_of(mutex)) {
    if (h.mutex.load(relaxed) != mutex) continue;
    if (found) return;
    found = &h;
  }
  if (found) remove(*found);
}

// A fiber finds only its own holding, because it removes its number before the holding is used again.
void forget(const void* mutex, const void* caller) noexcept {
  const scheduler* const worker = fibers_worker();
  if (!worker) return forget_on_thread(mutex);
  for (holding& h : bucket_of(mutex)) {
    if (h.mutex.load(relaxed) != mutex || h.fiber.load(relaxed) != worker->running()->id) continue;
    if (was_suspended(h, worker)) report(h, "and after the wait unlocks it at", caller);
    return remove(h);
  }
}

// Called when the caller is about to block. A holder is certainly suspended if it ran on this worker, which now runs
// the caller.
void look_at_holders(const void* mutex, const void* caller) noexcept {
  const scheduler* const worker = fibers_worker();
  if (!worker) return;
  for (const holding& h : bucket_of(mutex)) {
    const std::uint64_t fiber = h.fiber.load(std::memory_order_acquire);  // B
    if (fiber != 0 && fiber != worker->running()->id && h.mutex.load(relaxed) == mutex &&
        h.worker.load(relaxed) == worker)
      return report(h, "and another fiber of that worker would block it for ever at", caller);
  }
}

// Returns the result of a call that locks. A robust mutex whose holder has died is locked too.
int noted(int result, const void* mutex, const void* caller) noexcept {
  if (result == 0 || result == EOWNERDEAD) note(mutex, caller);
  return result;
}

// Locks by `lock`. First tries it by `attempt`, to look at the holders before it blocks.
template <class Lock>
int lock_after_look(int (*attempt)(Lock*), int (*lock)(Lock*), Lock* which, const void* caller) noexcept {
  int result = attempt(which);
  if (result == EBUSY) look_at_holders(which, caller);
  if (result != 0 && result != EOWNERDEAD) result = lock(which);  // blocks, or returns the right error
  return noted(result, which, caller);
}

template <class F>
F* next(const char* name) noexcept {
#ifdef __x86_64__  // before glibc 2.36 dlsym returned the oldest version, with another layout of condition variables
  if (void* const newer = ::dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2")) return reinterpret_cast<F*>(newer);
#endif
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace ulexite::detail

// Each function calls the C library's function. It looks up the address at the first call.
#define ULEXITE_NEXT(name) static const auto own = ulexite::detail::next<decltype(name)>(#name)

// Functions that lock, and note it. The first also look at the holders before they block. The last argument is the
// call in a run of ulexite::testing; without it, the C library's function is called there too.
#define ULEXITE_LOCK(name, attempt_name, type, ...)                                                 \
  int name(type* lock) noexcept {                                                                   \
    __VA_OPT__(if (ulexite::detail::in_a_run()) return __VA_ARGS__;)                                \
    static const auto attempt = ulexite::detail::next<int(type*)>(#attempt_name);                   \
    static const auto own = ulexite::detail::next<int(type*)>(#name);                               \
    return ulexite::detail::lock_after_look<type>(attempt, own, lock, __builtin_return_address(0)); \
  }
#define ULEXITE_TRY(name, parameters, arguments, ...)                                \
  int name parameters noexcept {                                                     \
    __VA_OPT__(if (ulexite::detail::in_a_run()) return __VA_ARGS__;)                 \
    ULEXITE_NEXT(name);                                                              \
    return ulexite::detail::noted(own arguments, lock, __builtin_return_address(0)); \
  }

extern "C" {

ULEXITE_LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, ulexite::detail::lock_in_run(lock))
ULEXITE_LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
ULEXITE_LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)

ULEXITE_TRY(pthread_mutex_trylock, (pthread_mutex_t * lock), (lock), ulexite::detail::try_lock_in_run(lock))
ULEXITE_TRY(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))
ULEXITE_TRY(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))

ULEXITE_TRY(pthread_mutex_timedlock, (pthread_mutex_t * lock, const timespec* until), (lock, until),
            ulexite::detail::lock_in_run_until(lock, CLOCK_REALTIME, until))
ULEXITE_TRY(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const timespec* until), (lock, until))
ULEXITE_TRY(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const timespec* until), (lock, until))

ULEXITE_TRY(pthread_mutex_clocklock, (pthread_mutex_t * lock, clockid_t clock, const timespec* until),
            (lock, clock, until), ulexite::detail::lock_in_run_until(lock, clock, until))
ULEXITE_TRY(pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t clock, const timespec* until),
            (lock, clock, until))
ULEXITE_TRY(pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t clock, const timespec* until),
            (lock, clock, until))

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  ULEXITE_NEXT(pthread_mutex_unlock);
  if (ulexite::detail::in_a_run()) return ulexite::detail::stand_in(mutex).release();
  ulexite::detail::forget(mutex, __builtin_return_address(0));
  return own(mutex);
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  ULEXITE_NEXT(pthread_rwlock_unlock);
  ulexite::detail::forget(lock, __builtin_return_address(0));
  return own(lock);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  ULEXITE_NEXT(pthread_cond_wait);
  if (ulexite::detail::in_a_run()) return ulexite::detail::wait_in_run(condition, mutex);
  return own(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  ULEXITE_NEXT(pthread_cond_timedwait);
  if (ulexite::detail::in_a_run()) return ulexite::detail::wait_in_run_until(condition, mutex, CLOCK_REALTIME, until);
  return own(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  ULEXITE_NEXT(pthread_cond_clockwait);
  if (ulexite::detail::in_a_run()) return ulexite::detail::wait_in_run_until(condition, mutex, clock, until);
  return own(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  ULEXITE_NEXT(pthread_cond_signal);
  if (!ulexite::detail::in_a_run()) return own(condition);
  ulexite::detail::stand_in(condition).notify_one();
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  ULEXITE_NEXT(pthread_cond_broadcast);
  if (!ulexite::detail::in_a_run()) return own(condition);
  ulexite::detail::stand_in(condition).notify_all();
  return 0;
}

int clock_gettime(clockid_t clock, timespec* into) noexcept {
  ULEXITE_NEXT(clock_gettime);
  if (clock != CLOCK_MONOTONIC || !ulexite::detail::in_a_run()) return own(clock, into);
  const std::int64_t now = ulexite::detail::now_ns();
  *into = {.tv_sec = now / 1'000'000'000, .tv_nsec = now % 1'000'000'000};
  return 0;
}
}
