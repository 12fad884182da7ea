// The parker under Relacy, with two workers that act as in scheduler.cpp, and two outside threads that publish. The
// only property is that every job is run. The jobs wait for each other. So if a job waits while a worker sleeps that
// could take it, all threads block, and Relacy reports a deadlock. The last job stops the workers, and all threads must
// end.
//
// MUTANT: no_fence            a publisher reads the idle word without a fence
// MUTANT: ring_not_seq_cst    the sleeper's check of the queues is not ordered after its announcement
// MUTANT: no_recheck          a worker does not check once more before it sleeps
// MUTANT: no_last_check       the last searcher does not check once more
// MUTANT: no_failed_start_check   no thread checks once more after a refused start
// MUTANT: unannounced_move    jobs move from queue to queue without a notify
// MUTANT: wake_not_sticky     a wake of the event loop is lost if no thread is in it yet
// MUTANT: no_own_recheck      a worker does not check once more for work that only it can do
// MUTANT: surplus_by_hint     a worker that was surplus before does not check once more before it sleeps
// MUTANT: silent_raise        a higher limit wakes no worker for work that is there already

#include <ulexite/runtime/park/parker.hpp>
#include <ulexite/runtime/queue/deque.hpp>

#include <initializer_list>
#include <utility>

#include "relacy_atomics.hpp"

enum class mutation {
  none,
  no_fence,
  ring_not_seq_cst,
  no_recheck,
  no_last_check,
  no_failed_start_check,
  unannounced_move,
  wake_not_sticky,
  no_own_recheck,
  surplus_by_hint,
  silent_raise
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

#include "parker_host.hpp"

// The four threads of a scenario: two workers, and two outsiders who do publish(0) and publish(1).
template <class Scenario>
struct scenario : runtime_model, rl::test_suite<Scenario, threads> {
  job jobs[4];

  void thread(unsigned id) {
    if (id < workers) {
      work(pool[id]);
    } else {
      static_cast<Scenario*>(this)->publish(id - workers);
    }
  }
};

// A job that pushes another, and keeps its worker until the other has taken it.
struct own_queue_is_robbed : scenario<own_queue_is_robbed> {
  void before() {
    jobs[0].pushes = jobs[0].waits_for = &jobs[1];
    left = 3;
  }
  void publish(unsigned outsider) { inject({outsider == 0 ? &jobs[0] : &jobs[2]}); }
};

// A job that keeps its worker until another thread's has been run.
struct outsiders_jobs_depend : scenario<outsiders_jobs_depend> {
  void before() {
    jobs[0].waits_for = &jobs[1];
    left = 3;
  }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0]});
    } else {
      inject({&jobs[2]});
      inject({&jobs[1]});
    }
  }
};

// A batch of two. The first job keeps its worker until the second has been run. The worker has moved the second to its
// own queue.
struct batch_is_shared : scenario<batch_is_shared> {
  void before() {
    jobs[0].waits_for = &jobs[1];
    left = 3;
  }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0], &jobs[1]});
    } else {
      inject({&jobs[2]});
    }
  }
};

// The second worker is refused, once.
struct start_is_refused : scenario<start_is_refused> {
  void before() {
    refusals = 1;
    left = 3;
  }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0]});
      inject({&jobs[1]});
    } else {
      inject({&jobs[2]});
    }
  }
};

// A job from the event loop, without an announcement.
struct event_is_seen : scenario<event_is_seen> {
  void before() {
    jobs[0].pushes = jobs[0].waits_for = &jobs[1];
    left = 3;
  }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0]});
    } else {
      raise_event(jobs[2]);
    }
  }
};

// A job that only the first worker can do; the other does not see it.
struct own_work_is_done : scenario<own_work_is_done> {
  void before() { left = 3; }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0]});
      give_own(pool[0], jobs[1]);
    } else {
      inject({&jobs[2]});
    }
  }
};

// One worker leaves its work to the other.
struct width_shrinks : scenario<width_shrinks> {
  void before() {
    jobs[0].pushes = &jobs[3];
    left = 4;
  }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0]});
      resize(1);
      inject({&jobs[1]});
    } else {
      inject({&jobs[2]});
    }
  }
};

// One worker leaves, and then is needed again: the first job keeps its worker until the second has been run.
struct width_grows : scenario<width_grows> {
  void before() {
    jobs[0].waits_for = &jobs[1];
    left = 3;
  }
  void publish(unsigned outsider) {
    if (outsider == 0) {
      inject({&jobs[0]});
      resize(1);
      inject({&jobs[1]});
      resize(2);
    } else {
      inject({&jobs[2]});
    }
  }
};

int main() {
  constexpr unsigned interleavings = 150'000;
  for (const bool by_exchange : {false, true}) {
    model::fence_by_exchange = by_exchange;
    const bool all = model::holds<own_queue_is_robbed>(interleavings) &&
                     model::holds<outsiders_jobs_depend>(interleavings) &&
                     model::holds<batch_is_shared>(interleavings) && model::holds<start_is_refused>(interleavings) &&
                     model::holds<event_is_seen>(interleavings) && model::holds<own_work_is_done>(interleavings) &&
                     model::holds<width_shrinks>(interleavings) && model::holds<width_grows>(interleavings);
    if (!all) return 1;
  }
}
