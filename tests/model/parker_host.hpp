#pragma once

// The runtime around the parker in its model: what core and scheduler are to it, with two workers that work as
// scheduler.cpp's do. Included after `mutation` and `mutant`, which leave out steps of it.

using policy = model::relacy_parking<model::orders_of<mutant, model::by<mutation::no_fence, model::no_fence>>>;

// The step that a mutant omits.
constexpr bool rechecks = mutant != mutation::no_recheck;
constexpr bool last_checks = mutant != mutation::no_last_check;
constexpr bool failed_start_checks = mutant != mutation::no_failed_start_check;
constexpr bool announces_moves = mutant != mutation::unannounced_move;
constexpr bool sticky = mutant != mutation::wake_not_sticky;
constexpr bool own_rechecks = mutant != mutation::no_own_recheck;
constexpr bool rechecks_as_surplus = mutant != mutation::surplus_by_hint;
constexpr bool raise_checks = mutant != mutation::silent_raise;

constexpr int workers = 2, threads = 4;

struct job {
  job* pushes = nullptr;     // to the queue of the worker that runs this one, first
  job* waits_for = nullptr;  // then: keeps the worker until that job is done
  rl::var<int> published;
  int runs = 0;
  bool done = false;
};

// A worker's part.
struct worker : ulexite::detail::basic_worker_slot<policy> {
  // In relacy_atomics nothing orders a load after the idle word's change.
  using ring_policy = std::conditional_t<mutant == mutation::ring_not_seq_cst, model::relacy_atomics<>, policy>;
  ulexite::detail::deque<job, 4, ulexite::detail::deque_order::first_in_first_out, ring_policy> ring;
  bool started = false;
  job* ready = nullptr;               // from the event loop
  policy::atomic<job*> own{nullptr};  // work that only it can do
};

// The runtime around the parker, in place of runtime_state and scheduler. A scenario derives from it.
struct runtime_model {
  using parker_type = ulexite::detail::parker<runtime_model, policy>;
  using worker_slot = parker_type::worker_slot;
  using locked = std::unique_lock<model::relacy_mutex>;

  parker_type parker{*this, workers};
  worker pool[workers];
  int threads_started = 0;  // guarded by the parker's mutex, as in worker_threads
  int refusals = 0;         // starts that the machine will refuse once one worker runs; guarded by the parker's mutex
  policy::atomic<bool> suspended{false};

  // the queue of all
  model::relacy_mutex inject_mutex;
  job* injected[threads];
  policy::atomic<int> injected_count{0};

  // the event loop
  model::relacy_mutex loop_mutex;
  model::relacy_condition_variable loop_changed;
  bool loop_woken = false, loop_entered = false;
  job* event = nullptr;

  // the end of jobs, and of all
  model::relacy_mutex done_mutex;
  model::relacy_condition_variable done_changed;
  int left = 0;
  bool over = false;

  bool blind[threads] = {};  // by thread: any_work returns false

  // A random schedule hardly ever stops a thread for long at the critical place. This does.
  static void dawdle() {
    if (rl::rand(2))
      for (unsigned turns = rl::rand(100); turns > 0; --turns) policy::pause(0);
  }

  // ---- the parker's host ----

  // The rings first. The check of the shared queue begins with a fence here, which would hide that the check of the
  // rings lacks one.
  bool any_work() {
    if (blind[rl::thread_index()]) return false;
    for (worker& w : pool)
      if (w.ring.may_have_items()) return true;
    return injected_count.load(policy::seq_cst) > 0;
  }
  bool has_work_for(worker_slot& sleeper) {
    return own_rechecks && static_cast<worker&>(sleeper).own.load(policy::relaxed) != nullptr;
  }
  void sleep_in_loop(worker_slot& sleeper) {
    locked lock(loop_mutex);
    RL_ASSERT(!std::exchange(loop_entered, true));
    while (!loop_woken && !event) loop_changed.wait(lock);
    loop_entered = false;
    turn_loop(static_cast<worker&>(sleeper));
  }
  void wake_loop() {
    locked lock(loop_mutex);
    if (sticky || loop_entered) loop_woken = true;
    loop_changed.notify_one();
  }
  bool start_worker() {
    dawdle();
    locked lock(parker.mutex());
    if (threads_started > 0 && refusals > 0) {
      --refusals;
      suspended.store(true, policy::relaxed);
      return false;
    }
    locked start(done_mutex);
    RL_ASSERT(threads_started < workers);
    pool[threads_started++].started = true;
    done_changed.notify_all();
    return true;
  }
  static std::uint32_t in_hooks() { return 0; }
  bool starts_suspended() { return suspended.load(policy::relaxed); }
  void on_all_asleep() {
    const auto counts = parker.counts();
    RL_ASSERT(counts.started > 0 && counts.sleeping == counts.started);
  }
  void on_worker_awake() { RL_ASSERT(parker.counts().started > 0); }

  // ---- publishing ----

  void notify() {
    blind[rl::thread_index()] = !failed_start_checks;
    parker.notify();
    blind[rl::thread_index()] = false;
  }
  void inject(std::initializer_list<job*> published) {
    dawdle();
    {
      locked lock(inject_mutex);
      int length = injected_count.load(policy::relaxed);
      for (job* one : published) {
        one->published($) = 1;
        injected[length++] = one;
      }
      injected_count.store(length, policy::seq_cst);
    }
    notify();
  }
  void resize(unsigned to) {
    dawdle();
    blind[rl::thread_index()] = !raise_checks;
    parker.set_limit(to);
    blind[rl::thread_index()] = false;
  }
  void give_own(worker& whose, job& published) {
    published.published($) = 1;
    whose.own.store(&published, policy::release);  // the real queue has a lock
    parker.wake(whose);
  }
  void raise_event(job& published) {
    locked lock(loop_mutex);
    published.published($) = 1;
    event = &published;
    loop_changed.notify_one();
  }

  // ---- a worker, as in scheduler.cpp ----

  void work(worker& self) {
    {
      locked lock(done_mutex);
      while (!self.started && !over) done_changed.wait(lock);
      if (!self.started) return;
    }
    self.searching = true;
    bool stopping = false;
    while (!stopping) {
      const bool surplus = parker.is_surplus();
      job* chosen = surplus ? leave_work(self) : self.ring.pop_top();
      if (!chosen) chosen = self.own.exchange(nullptr, policy::acq_rel);
      if (!chosen && !surplus) chosen = take_injected(self);
      if (!chosen && !surplus) chosen = search(self);
      if (!chosen) chosen = park(self, stopping, surplus && !rechecks_as_surplus);
      if (!chosen) continue;
      end_search(self);
      run(self, *chosen);
    }
  }

  // As scheduler::leaves_work.
  job* leave_work(worker& self) {
    end_search(self);
    while (job* const left = self.ring.pop_top()) inject({left});
    return nullptr;
  }

  // Half of the queue: the first is returned, the others go to the worker's own.
  job* take_injected(worker& self) {
    if (injected_count.load(policy::seq_cst) == 0) return nullptr;
    job* first = nullptr;
    bool moved = false;
    {
      locked lock(inject_mutex);
      const int length = injected_count.load(policy::relaxed);
      if (length == 0) return nullptr;
      const int taken = length / workers + 1 < length ? length / workers + 1 : length;
      job* rest[threads];
      first = injected[0];
      for (int i = 1; i < taken; ++i) rest[i] = injected[i];
      for (int i = taken; i < length; ++i) injected[i - taken] = injected[i];
      injected_count.store(length - taken, policy::seq_cst);
      lock.unlock();
      if (taken > 1) dawdle();
      for (int i = 1; i < taken; ++i) RL_ASSERT(self.ring.push(*rest[i]));
      moved = taken > 1;
    }
    if (moved && announces_moves) notify();
    return first;
  }

  job* search(worker& self) {
    if (parker.counts().awake() <= 1) return nullptr;
    if (!parker.begin_search(self)) return nullptr;
    if (job* const found = take_injected(self)) return found;
    for (worker& victim : pool)
      if (&victim != &self)
        if (job* const stolen = victim.ring.steal_half(self.ring)) return stolen;
    if (!parker.try_acquire_poller(self)) return nullptr;
    {
      locked lock(loop_mutex);
      turn_loop(self);
    }
    parker.release_poller();
    return std::exchange(self.ready, nullptr);
  }

  job* park(worker& self, bool& stopping, bool by_hint) {
    blind[rl::thread_index()] = !rechecks || by_hint;
    stopping = parker.park(self) == parker_type::outcome::stopping;
    blind[rl::thread_index()] = false;
    return std::exchange(self.ready, nullptr);
  }

  void end_search(worker& self) {
    blind[rl::thread_index()] = !last_checks;
    parker.end_search(self, rl::rand(2));
    blind[rl::thread_index()] = false;
  }

  // The loop's mutex held.
  void turn_loop(worker& self) {
    loop_woken = false;
    self.ready = std::exchange(event, nullptr);
  }

  void run(worker& self, job& running) {
    RL_ASSERT(++running.runs == 1);
    RL_ASSERT(int(running.published($)) == 1);
    if (running.pushes) {
      running.pushes->published($) = 1;
      RL_ASSERT(self.ring.push(*running.pushes));
      notify();
    }
    {
      locked lock(done_mutex);
      while (running.waits_for && !running.waits_for->done) done_changed.wait(lock);
      running.done = true;
      over = --left == 0;
      done_changed.notify_all();
      if (!over) return;
    }
    parker.stop();
  }
};
