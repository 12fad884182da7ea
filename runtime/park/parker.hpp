#pragma once

// How workers go to sleep and are woken. The protocol has three goals. No work waits while a worker sleeps that could
// take it. Exactly one sleeper watches the event loop. A wake costs nothing if no worker sleeps. docs/scheduler.md has
// the states, the proof and the rejected ways. tests/model/parking.pml is the protocol in Promela, and
// tests/model/parker_model.cpp runs this text under Relacy.
//
// A worker is running, searching or sleeping. It sleeps on a condition variable; the holder of the poller's token
// sleeps in the event loop. Every step except the fast path of notify happens in one critical section of mutex_.
//
// A limit holds for the workers that are awake. At the limit no worker is woken for work that others can do. A worker
// above it is surplus: it leaves its work to the others, and sleeps. It does not check the queues before, because each
// of the others does so before its own sleep. It never sleeps in the event loop, which an event would end.
// A worker that is woken for a pinned fiber may be one too many; then another leaves its work. A worker in its start
// hook is awake, but takes no work, and may wait for a fiber. So the limit leaves room for it.
//
// State
//   idle_       see idle.hpp.
//   poller_     the worker that turns the event loop, blocking or not, or null. Any worker takes it by exchange; its
//               holder releases it.
//   sleepers_   the workers that sleep on a condition variable, newest last. Guarded by mutex_.
//   in_loop_    the worker that sleeps in the loop. Guarded by mutex_.
//   limit_      the largest number of awake workers. Written under mutex_. A pusher reads it without mutex_, and may
//               see it stale only as pairing C allows.
//   stopping_   guarded by mutex_.
//
// Pairings
//   A  idle.hpp A.
//   B  release_poller stores null, release  ->  try_acquire_poller exchanges, acquire: one turn of the loop happens
//      before the next.
//   C  a pusher publishes work, executes a full fence (A), then loads limit_. set_limit stores it, executes a full
//      fence, then reads the queues. Either the pusher sees the new limit, or set_limit sees the work.

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/park/idle.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ulexite::detail {

struct std_parking : std_atomics {
  using mutex = std::mutex;
  using condition_variable = std::condition_variable;
};

// A worker's place in the parker.
template <class Policy>
struct basic_worker_slot : list_hook {
  typename Policy::condition_variable wake;
  bool notified = false;   // guarded by the parker's mutex
  bool searching = false;  // written by the worker only
};

// The functions that the parker needs from the runtime.
//   bool any_work()            whether some queue may hold work. Never false for work published before.
//   bool has_work_for(worker_slot&)   whether there is work that only this worker can do. Mutex held.
//   void sleep_in_loop(worker_slot&)  blocks in the event loop until an event, a timer or wake_loop
//   void wake_loop()           ends the present or the next sleep_in_loop
//   bool start_worker()        starts another thread; false: refused
//   bool starts_suspended()    a start was refused just now: do not try again yet; mutex held
//   std::uint32_t in_hooks()   workers that are awake but take no work yet: a hint, whose errors the monitor mends
//   void on_all_asleep()       every started worker sleeps; mutex held
//   void on_worker_awake()     a worker leaves its sleep; mutex held
template <class Host, class Policy = std_parking>
class parker {
 public:
  using worker_slot = basic_worker_slot<Policy>;
  enum class outcome : std::uint8_t {
    work_seen,  // did not sleep, or was woken by a pusher: searching now
    polled,     // was in the event loop, which may have returned events
    stopping,   // the worker must end
  };

  parker(Host& host, std::uint32_t limit) noexcept : host_(host), limit_(limit) {}

  // For a deterministic run. Its only worker returns by itself. It counts as a searcher, so no worker is woken.
  void expect_own_worker() noexcept {
    std::unique_lock lock(mutex_);
    idle_.start_into_search();
  }

  // Call it after every publication of work. Any thread.
  void notify() noexcept {
    if (wants_another(idle_.counts_after_publishing())) wake_one();  // A, C
  }

  // Whether one more worker could help with published work. A searcher, or the next one, will see the work.
  [[nodiscard]] bool wants_another(const idle_counts& now) const noexcept {
    return now.searching == 0 && now.awake() < room();
  }

  // Wakes one sleeper, or starts another worker, unless a worker searches already or the limit is reached. The last one
  // before the limit is the one in the loop, if there is one. Any thread.
  void wake_one() noexcept {
    perturb();
    for (;;) {
      bool loop = false, start = false;
      {
        std::unique_lock lock(mutex_);
        const idle_counts now = idle_.counts();
        if (!wants_another(now) || stopping_) return;
        const bool is_last = in_loop_ && now.awake() + 1 >= room();
        if (worker_slot* const chosen = is_last || sleepers_.empty() ? in_loop_ : &sleepers_.back()) {
          loop = wake_locked(*chosen);
        } else if (now.awake() < limit() && !host_.starts_suspended()) {
          idle_.start_into_search();
          start = true;
        }
      }
      if (loop) host_.wake_loop();
      if (!start || host_.start_worker()) return;
      // Pushers may have relied on the refused worker, so this thread takes the duty of a last searcher.
      bool last;
      {
        std::unique_lock lock(mutex_);
        last = idle_.start_failed();
        const idle_counts left = idle_.counts();
        if (left.sleeping == left.started) host_.on_all_asleep();
      }
      if (!last || !host_.any_work()) return;
    }
  }

  // Wakes a worker, if it sleeps, for work that only it can do. has_work_for must already be true for it. Any thread.
  void wake(worker_slot& chosen) noexcept {
    perturb();
    bool loop = false;
    {
      std::unique_lock lock(mutex_);
      loop = wake_locked(chosen);
    }
    if (loop) host_.wake_loop();
  }

  // Whether this worker may search. It may not if more than half of the awake workers would then be searchers.
  [[nodiscard]] bool begin_search(worker_slot& worker_slot) noexcept {
    if (worker_slot.searching) return true;
    const idle_counts now = idle_.counts();
    if (2 * now.searching >= now.awake()) return false;
    idle_.begin_search();
    worker_slot.searching = true;
    return true;
  }

  // The worker has found work, or gives up. The last searcher passes its role on if it sees more work, so workers are
  // woken one after the other. Else an eager one passes on the watch of the event loop.
  void end_search(worker_slot& worker_slot, bool eager) noexcept {
    if (!leave_search(worker_slot)) return;
    if (host_.any_work()) {
      wake_one();
    } else {
      pass_poller_on(eager);
    }
  }

  // The worker has something else to do first. True: it was the last searcher, and the caller now has the duty of a
  // last searcher.
  [[nodiscard]] bool leave_search(worker_slot& worker_slot) noexcept {
    if (!worker_slot.searching) return false;
    perturb();
    worker_slot.searching = false;
    return idle_.end_search();
  }

  // Called by a worker that goes on to run fibers after a poll or a search. An eager one is a bad poller: if no worker
  // watches the event loop, another should.
  void pass_poller_on(bool eager) noexcept {
    if (eager && nobody_polls()) wake_one();
  }

  // Whether no worker watches the event loop although one sleeps that could. A hint.
  [[nodiscard]] bool nobody_polls() const noexcept { return counts().sleeping > 0 && could_poll(); }

  // The same, also if one could be started. A hint, for the monitor only. A worker that begins to run fibers must not
  // start a thread for events that may never arrive.
  [[nodiscard]] bool could_poll() const noexcept {
    return wants_another(counts()) && !poller_.load(Policy::relaxed);  // hint
  }

  // Sleeps until there is something to do. Called when the worker has found nothing. It reads the queues once more
  // after it has announced itself. So either a pusher sees it asleep, or it sees the pusher's work.
  outcome park(worker_slot& worker_slot) noexcept {
    perturb();
    std::unique_lock lock(mutex_);
    if (stopping_) return outcome::stopping;
    idle_.fall_asleep(worker_slot.searching);
    worker_slot.searching = false;
    perturb();
    const idle_counts now = counts();
    const bool surplus = now.awake() >= room();
    if ((!surplus && host_.any_work()) || host_.has_work_for(worker_slot)) {
      idle_.wake_into_search();
      worker_slot.searching = true;
      return outcome::work_seen;
    }
    if (now.sleeping == now.started) host_.on_all_asleep();
    if (!surplus && try_acquire_poller(worker_slot)) return sleep_in_loop(worker_slot, lock);
    sleepers_.push_back(worker_slot);
    while (!worker_slot.notified) worker_slot.wake.wait(lock);
    host_.on_worker_awake();
    worker_slot.notified = false;
    worker_slot.searching = true;
    return stopping_ ? outcome::stopping : outcome::work_seen;
  }

  // The right to turn the event loop without blocking. Any worker.
  [[nodiscard]] bool try_acquire_poller(worker_slot& worker_slot) noexcept {
    if (poller_.load(Policy::relaxed)) return false;  // hint: the exchange decides
    basic_worker_slot<Policy>* nobody = nullptr;
    return poller_.compare_exchange_strong(nobody, &worker_slot, Policy::acquire, Policy::relaxed);  // B
  }
  void release_poller() noexcept { poller_.store(nullptr, Policy::release); }  // B

  // Every worker leaves park, now or later, with outcome::stopping. No more workers are started. Any thread, without
  // the mutex.
  void stop() noexcept {
    bool loop;
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      while (!sleepers_.empty()) static_cast<void>(wake_locked(sleepers_.front()));
      loop = in_loop_ && wake_locked(*in_loop_);
    }
    if (loop) host_.wake_loop();
  }

  [[nodiscard]] idle_counts counts() const noexcept { return idle_.counts(); }

  // Changes the largest number of awake workers. At the new limit none watches the event loop. Below it one is woken or
  // started for work that is there already; each wakes the next. Any thread, without the mutex.
  void set_limit(std::uint32_t limit) noexcept {
    bool loop = false;
    {
      std::unique_lock lock(mutex_);
      limit_.store(limit, Policy::relaxed);  // C
      loop = in_loop_ && counts().awake() >= room() && wake_locked(*in_loop_);
    }
    if (loop) host_.wake_loop();
    if (wants_another(idle_.counts_after_publishing()) && host_.any_work()) wake_one();  // C
  }
  // Exact with the mutex held, otherwise a hint.
  [[nodiscard]] std::uint32_t limit() const noexcept {
    return limit_.load(Policy::relaxed);  // hint
  }
  // Whether some awake worker must leave its work to the others, and park. A hint: park decides.
  [[nodiscard]] bool is_surplus() const noexcept { return counts().awake() > room(); }

  // The parker's mutex, for decisions during which no worker may fall asleep or wake up.
  typename Policy::mutex& mutex() noexcept { return mutex_; }

 private:
  [[nodiscard]] std::uint32_t room() const noexcept { return limit() + host_.in_hooks(); }
  // Passes the searcher's role to a sleeper. The role is passed on, and no second one is created. Mutex held.
  void pass_search_role(worker_slot& sleeper) noexcept {
    idle_.wake_into_search();
    sleeper.notified = true;
  }

  // Ends the sleep of a sleeping worker. True: it is in the loop, and the caller must wake the loop. Mutex held.
  [[nodiscard]] bool wake_locked(worker_slot& sleeper) noexcept {
    if (in_loop_ == &sleeper) {
      pass_search_role(sleeper);
      in_loop_ = nullptr;
      return true;
    }
    if (!sleeper.linked()) return false;
    sleepers_.remove(sleeper);
    pass_search_role(sleeper);
    sleeper.wake.notify_one();  // under the lock: after it the worker_slot may be destroyed
    return false;
  }

  // Mutex held by `lock`, and again at the return. The caller has the poller's token.
  outcome sleep_in_loop(worker_slot& worker_slot, std::unique_lock<typename Policy::mutex>& lock) noexcept {
    in_loop_ = &worker_slot;
    lock.unlock();
    host_.sleep_in_loop(worker_slot);
    lock.lock();
    host_.on_worker_awake();
    release_poller();
    if (worker_slot.notified) {
      worker_slot.notified = false;
      worker_slot.searching = true;
    } else {
      in_loop_ = nullptr;
      idle_.wake();
    }
    return stopping_ ? outcome::stopping : outcome::polled;
  }

  Host& host_;
  typename Policy::template atomic<std::uint32_t> limit_;
  alignas(64) basic_idle_word<Policy> idle_;
  alignas(64) typename Policy::template atomic<worker_slot*> poller_{nullptr};
  alignas(64) typename Policy::mutex mutex_;
  intrusive_list<worker_slot> sleepers_;
  worker_slot* in_loop_ = nullptr;
  bool stopping_ = false;
};

}  // namespace ulexite::detail
