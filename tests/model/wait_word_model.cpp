// One wait under Relacy. It ends for exactly one reason. The waiter is resumed exactly once, by a thread that sees the
// saved context. The waiter sees the earlier writes of the thread that ended its wait.
//
// MUTANT: a_not_released      a claim does not publish the earlier writes
// MUTANT: a_not_acquired      the two sides do not see each other's writes
// MUTANT: c_no_light_fence    a waiter does not see the request of a canceller that does not see it wait
// MUTANT: c_no_heavy_fence    the same from the other end
// MUTANT: not_exchanged       two claims succeed
// MUTANT: early_is_resumed    a claimer resumes a waiter that is not yet saved
// MUTANT: commit_before_save
// MUTANT: interrupt_stays     the end of a scope does not take the interrupt of its failed child back

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/wait_word.hpp>

#include "relacy_atomics.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  c_no_light_fence,
  c_no_heavy_fence,
  not_exchanged,
  early_is_resumed,
  commit_before_save,
  interrupt_stays
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::c_no_light_fence, model::no_light_fence>,
                                           model::by<mutation::c_no_heavy_fence, model::no_heavy_fence>,
                                           model::by<mutation::not_exchanged, model::exchange_is_load_and_store>>>;

using ulexite::detail::claim_result;
using ulexite::detail::wake_reason;

constexpr bool save_first = mutant != mutation::commit_before_save;

// A fiber that waits once. The thread that resumes it executes its code after the wait.
struct waiter {
  ulexite::detail::basic_wait_word<atomics> word;
  rl::var<int> context;
  rl::var<int> note[3];  // by reason: the data that the claimer leaves for the waiter
  int ends = 0, resumes = 0;

  // The end of the switch: true if the fiber waits now.
  bool switched(bool prepared, bool cancellable) {
    if (save_first) context($) = 1;
    const bool waits = word.commit(prepared, cancellable);
    if (!save_first) context($) = 1;
    return waits;
  }

  void resume() {
    RL_ASSERT(++resumes == 1);
    RL_ASSERT(int(context($)) == 1);
    const wake_reason reason = word.reason();
    const bool by_itself = reason == wake_reason::cancelled && ends == 0;  // the commit met a request to stop
    if (!by_itself) RL_ASSERT(int(note[int(reason)]($)) == 1);
  }

  // True if this ended the wait.
  bool claim(wake_reason reason) {
    note[int(reason)]($) = 1;
    const auto result = word.claim(reason);
    if (result == claim_result::lost) return false;
    RL_ASSERT(++ends == 1);
    if (result == claim_result::won || mutant == mutation::early_is_resumed) resume();
    return true;
  }

  void stop() {
    note[int(wake_reason::cancelled)]($) = 1;
    RL_ASSERT(word.request_stop());
    RL_ASSERT(!word.request_stop() && word.stop_requested());
    cancel();
  }
  void cancel() {
    atomics::heavy_fence();
    if (!word.cancel()) return;
    RL_ASSERT(++ends == 1);
    resume();
  }
};

// A wait for a value with a time limit: value and timer may arrive before the switch, the stop at any time.
struct prepared_wait : rl::test_suite<prepared_wait, 4> {
  waiter self;
  atomics::atomic<bool> armed{false};  // the lock of the sources, which the claimers take
  bool retracted = false, cancellable = false;

  void before() { cancellable = rl::rand(2); }

  void thread(unsigned id) {
    switch (id) {
      case 0: {
        self.word.prepare();
        armed.store(true, rl::mo_seq_cst);
        if (rl::rand(4) == 0 && (retracted = self.word.retract())) return;
        if (!self.switched(true, cancellable)) self.resume();
        return;
      }
      case 1: until_armed(), self.claim(wake_reason::notified); return;
      case 2: until_armed(), self.claim(wake_reason::timed_out); return;
      case 3: self.stop(); return;
    }
  }

  void after() {
    RL_ASSERT(self.resumes == (retracted ? 0 : 1));
    const bool cancelled = self.word.reason() == wake_reason::cancelled;
    if (cancelled) RL_ASSERT(cancellable && !retracted);
    if (retracted) RL_ASSERT(self.ends == 0);
    RL_ASSERT(self.word.stop_requested());  // sticky
  }

  void until_armed() {
    while (!armed.load(rl::mo_seq_cst)) atomics::pause(0);
  }
};

// A wait that one lock guards, held over the switch: a claim never comes early. The second notifier finds no waiter, or
// a waiter that was cancelled and has not removed its entry yet.
struct wait_under_a_lock : rl::test_suite<wait_under_a_lock, 4> {
  waiter self;
  ulexite::detail::basic_spin_lock<atomics> lock;
  rl::var<bool> queued;
  bool cancellable = false;

  void before() {
    queued($) = false;
    cancellable = rl::rand(2);
    // The wait begins where an earlier one has left the word.
    RL_ASSERT(self.word.commit(false, true) && self.word.claim(wake_reason::notified) == claim_result::won);
  }

  void thread(unsigned id) {
    switch (id) {
      case 0: {
        lock.lock();
        queued($) = true;
        const bool waits = self.switched(false, cancellable);
        lock.unlock();
        if (!waits) self.resume();
        return;
      }
      case 1:
      case 2: {
        lock.lock();
        if (queued($)) {
          queued($) = false;
          const bool ended = self.claim(wake_reason::notified);
          if (!cancellable) RL_ASSERT(ended);
        }
        lock.unlock();
        return;
      }
      case 3: self.stop(); return;
    }
  }

  void after() {
    if (self.resumes == 0) RL_ASSERT(!cancellable && bool(queued($)));  // notified before the wait
  }
};

// The body of a scope waits, and a child fails. The body may be asked to stop too. The end of the scope waits for the
// child's end. After that only a request to stop ends the next wait.
struct interrupted_scope : rl::test_suite<interrupted_scope, 4> {
  waiter self;
  ulexite::detail::basic_spin_lock<atomics> lock;
  rl::var<bool> queued;
  bool stops = false;

  void before() {
    queued($) = false;
    self.note[int(wake_reason::cancelled)]($) = 1;  // of the two cancellers
    stops = rl::rand(2);
  }

  void thread(unsigned id) {
    switch (id) {
      case 0: {
        lock.lock();
        queued($) = true;
        const bool waits = self.switched(false, true);
        lock.unlock();
        if (!waits) self.resume();
        return;
      }
      case 1:
        lock.lock();
        if (queued($)) {
          queued($) = false;
          self.claim(wake_reason::notified);
        }
        lock.unlock();
        return;
      case 2:
        self.word.interrupt();
        self.cancel();
        return;
      case 3:
        if (!stops) return;
        RL_ASSERT(self.word.request_stop());
        self.cancel();
        return;
    }
  }

  void after() {
    RL_ASSERT(self.resumes == 1);
    if (mutant != mutation::interrupt_stays) self.word.end_interrupt();
    RL_ASSERT(self.word.stop_requested() == stops);
    RL_ASSERT(self.word.commit(false, true) != stops);
    if (!stops) RL_ASSERT(self.word.claim(wake_reason::notified) == claim_result::won);
  }
};

int main() {
  return model::holds<prepared_wait>(600'000) && model::holds<wait_under_a_lock>(400'000) &&
                 model::holds<interrupted_scope>(200'000)
             ? 0
             : 1;
}
