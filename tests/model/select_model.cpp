// Select over channels under Relacy: the text that ships. A wait ends for exactly one reason, a value is in exactly one
// place, no select serves itself, and no waiter sleeps for ever.
//
// MUTANT: prepared_late       the word is prepared after the locks are released: a partner between finds no wait
//   sync/select/select_case.cpp: self.agent->word.prepare();\n =>
//   sync/select/select_case.cpp: enter_all(cases, *self.agent, sourced::without_lock); => self.agent->word.prepare();
// MUTANT: entered_late        the locks are released between the last attempt and the queues
//   sync/select/select_case.cpp: if (may_wait) {\n => if (may_wait) {\n    all.unlock();\n    all.lock(self.worker);\n
// MUTANT: left_without_lock   the case leaves its queue while a partner serves it
//   sync/select/select_case.cpp: each->lock(worker);\n    const std::lock_guard guard(*each, std::adopt_lock);\n    if (each->leave() => if (each->leave()
// MUTANT: left_as_before      it is left with the lock of the worker on which the wait began, which now runs another fiber
//   sync/select/select_case.cpp: wake_reason reason, select_case* first) noexcept { => wake_reason reason, select_case* first, scheduler* worker) noexcept {
//   sync/select/select_case.cpp: scheduler* const worker = this_caller().worker;\n =>
//   sync/select/select_case.cpp: const wake_reason reason = suspend_prepared => const auto before = this_caller().worker; const wake_reason reason = suspend_prepared
//   sync/select/select_case.cpp: leave_all(cases, reason, first); => leave_all(cases, reason, first, before);
// MUTANT: locked_one_by_one   each case is tried and entered under its own lock alone: a select that stands somewhere
//                             serves another
//   sync/select/select_case.cpp: lock_set all(by_source); => return model::one_by_one(cases, self, wake.who); lock_set all(by_source);
// MUTANT: locks_unordered     each select takes the locks in the order of its cases
//   sync/select/select_case.cpp: std::ranges::sort(cases_, {}, &select_case::source); => std::ranges::stable_partition(cases_, [](auto* each) { return !each->source; });
// MUTANT: lock_taken_twice    a lock is taken for each of its cases
//   sync/select/select_case.cpp: last = each->source; =>
// MUTANT: served_after_unlock a claimer writes the node of a waiter that is not asleep, and may have left
//   sync/channel.hpp: partner.result = detail::wait_node::outcome::served; => model::serve_later(partner);
//   sync/wait/wait_queue.hpp: if (!who) return;\n    if (holds) { => model::serve_now(); if (!who) return; if (holds) {
// MUTANT: taken_unclaimed     a send serves a select whose wait is over
//   sync/channel.hpp: receiver = receivers_.claim_oldest()) { => receiver = model::claim_anyhow(receivers_)) {
// MUTANT: closed_unclaimed    a close ends a wait that it has not claimed
//   sync/channel.hpp: claimed = queue->claim_oldest()) { => claimed = model::claim_anyhow(*queue)) {
// MUTANT: closed_unnoticed    a case that a close has ended counts as served
//   sync/select/channel_case.hpp: case wait_node::outcome::ended: closed_ = true; => case wait_node::outcome::ended: closed_ = false;
// MUTANT: again_is_chosen     a case whose value could not be moved counts as chosen
//   sync/select/channel_case.hpp: return ending::again; => break;
// MUTANT: limit_ignored       a wait that its time limit ended begins again
//   sync/select/select_case.cpp: reason == wake_reason::timed_out ? first : nullptr; => nullptr;

#include "relacy_library.hpp"

enum class mutation {
  none,
  prepared_late,
  entered_late,
  left_without_lock,
  left_as_before,
  locked_one_by_one,
  locks_unordered,
  lock_taken_twice,
  served_after_unlock,
  taken_unclaimed,
  closed_unclaimed,
  closed_unnoticed,
  again_is_chosen,
  limit_ignored
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders;

// What a mutant does when it has released the lock.
namespace ulexite::detail {
struct wait_node;
}
namespace model {
void serve_later(ulexite::detail::wait_node& partner);
void serve_now();
}  // namespace model

#include "relacy_agents.hpp"
#include "relacy_channels.hpp"

#include <ulexite/sync/select.hpp>

namespace model {

using ulexite::detail::select_case;

ulexite::detail::wait_node* served_late[8];

void serve_later(ulexite::detail::wait_node& partner) { served_late[rl::thread_index()] = &partner; }
void serve_now() {
  if (auto* const partner = std::exchange(served_late[rl::thread_index()], nullptr))
    partner->result = ulexite::detail::wait_node::outcome::served;
}

// Step 2 of a mutant.
select_case* one_by_one(std::span<select_case*> cases, ulexite::detail::caller self, ulexite::detail::agent*& wake) {
  select_case* chosen = nullptr;
  self.agent->word.prepare();
  for (select_case* const each : cases) {
    each->lock(self.worker);
    if (each->attempt(wake)) {
      chosen = each;
    } else {
      each->enter(*self.agent);
    }
    each->unlock();
    if (chosen) break;
  }
  for (select_case* const each : cases) {
    if (!chosen || each == chosen) break;
    each->lock(self.worker);
    static_cast<void>(each->leave());
    each->unlock();
  }
  return chosen;
}

}  // namespace model

#include <ulexite/sync/select/select_case.cpp>

const char ULEXITE_BUILT_AS = 0;

using model::parcel, model::status;
using ulexite::on_receive, ulexite::on_send, ulexite::when;

// What a select has done: the case, or how it ended without one. `received` is what a receiving case got.
struct outcome {
  int which = -1;
  bool closed = false, cancelled = false;
  parcel received;

  auto take() {
    return [this](std::optional<parcel>&& value) {
      closed = !value;
      if (value) received = std::move(*value);
    };
  }
  bool passed(int index) const { return which == index && !closed; }
};

template <class... Cases>
void run(outcome& into, Cases&&... cases) try {
  into.which = static_cast<int>(ulexite::select(std::forward<Cases>(cases)...));
} catch (const ulexite::operation_cancelled&) {
  into.cancelled = true;
} catch (const ulexite::channel_closed&) {
  into.closed = true;
}

template <class T>
struct two_channels {
  model::workers workers;
  ulexite::channel<T> at[2];

  void bias() {
    model::channel_before first(workers);
    for (const auto& each : at) first.bias(each);
  }
  void close() {
    for (auto& each : at) each.close();
  }
};

// One of two values is delivered; the sender of the other keeps it, and gets the close.
struct two_partners : rl::test_suite<two_partners, 3>, two_channels<parcel> {
  model::fiber fibers[3];
  outcome done;
  parcel values[2] = {parcel(1), parcel(2)};
  bool sent[2] = {}, second_tries_only = false;

  void before() {
    bias();
    second_tries_only = rl::rand(2);
  }
  void thread(unsigned id) {
    fibers[id].begin_late(&workers);
    if (id == 2) {
      run(done, on_receive(at[0], done.take()), on_receive(at[1], done.take()));
      RL_ASSERT(!done.closed);
      close();
    } else if (id == 1 && second_tries_only) {
      sent[id] = at[id].try_send(values[id]) == ulexite::channel_status::ok;
    } else {
      const status how = model::send(at[id], values[id]);
      RL_ASSERT(how == status::ok || how == status::closed);
      sent[id] = how == status::ok;
    }
    fibers[id].finish();
  }
  void after() {
    RL_ASSERT(sent[0] + sent[1] == 1);
    for (int i = 0; i < 2; ++i) {
      RL_ASSERT(sent[i] == done.passed(i));
      RL_ASSERT(values[i].number() == (sent[i] ? 0 : i + 1));
    }
    RL_ASSERT(done.received.number() == (sent[0] ? 1 : 2));
  }
};

// A partner, a timer, and a request to stop or the close of the other channel, or some of them.
struct four_reasons : rl::test_suite<four_reasons, 4>, two_channels<parcel> {
  static constexpr int number = 7;

  model::fiber fibers[3];
  outcome done;
  parcel given{number}, taken;
  bool sends = false, has_partner = false, is_timed = false, stops = false, closes = false;
  status how = status::closed;

  void before() {
    bias();
    sends = rl::rand(2);
    is_timed = rl::rand(2);
    const unsigned third = rl::rand(3);
    stops = third == 1;
    closes = third == 2;
    has_partner = rl::rand(2) || !(is_timed || stops || closes);
  }
  void thread(unsigned id) {
    if (id < 3) fibers[id].begin_late(&workers);
    switch (id) {
      case 0:
        run(done, when(!sends, on_receive(at[0], done.take())), when(sends, on_send(at[0], given)),
            on_receive(at[1], done.take()), when(is_timed, ulexite::after(model::limit(true))));
        close();
        break;
      case 1:
        if (has_partner) how = sends ? model::receive(at[0], taken) : model::send(at[0], given);
        break;
      case 2:
        if (stops) fibers[0].stop();
        if (closes) at[1].close();
        break;
      case 3:
        if (is_timed) fibers[0].fire();
        return;
    }
    fibers[id].finish();
  }
  void after() {
    const bool passed = done.passed(sends ? 1 : 0);
    RL_ASSERT(!done.passed(sends ? 0 : 1) && !done.passed(2));
    RL_ASSERT(passed == (how == status::ok));
    RL_ASSERT(given.number() == (passed ? 0 : number));
    RL_ASSERT((sends ? taken : done.received).number() == (passed ? number : 0));
    RL_ASSERT(passed || done.which == 3 ? true : done.cancelled ? stops : closes && done.closed && done.which == 2);
    RL_ASSERT(done.which != 3 || is_timed);
  }
};

// Each would send on one channel and receive on the other, or both on the same, which none does to itself. One of them
// may be asked to stop, and then it ends the wait of the other.
struct face_to_face : rl::test_suite<face_to_face, 3>, two_channels<parcel> {
  model::fiber fibers[3];
  outcome done[2];
  parcel values[2] = {parcel(1), parcel(2)};
  bool same = false, stops = false;

  void before() {
    bias();
    same = rl::rand(4) == 0;
    stops = rl::rand(3) == 0;
  }
  void thread(unsigned id) {
    if (id == 2) {
      if (stops) fibers[0].stop();
      return;
    }
    fibers[id].begin_late(&workers);
    auto &first = at[0], &second = same ? at[0] : at[1];
    run(done[id], on_send(id == 0 ? first : second, values[id]), on_receive(id == 0 ? second : first, done[id].take()));
    if (done[id].cancelled) close();
    fibers[id].finish();
  }
  void after() {
    if (done[0].cancelled) {
      RL_ASSERT(stops && done[1].closed && !done[1].cancelled);
    } else {
      for (int i = 0; i < 2; ++i) RL_ASSERT(!done[i].closed && done[i].passed(0) == done[1 - i].passed(1));
    }
    for (int i = 0; i < 2; ++i) {
      RL_ASSERT(values[i].number() == (done[i].passed(0) ? 0 : i + 1));
      RL_ASSERT(done[1 - i].received.number() == (done[1 - i].passed(1) ? i + 1 : 0));
    }
  }
};

// Two values whose moves fail now and then: whose wait ended without a result, select too, tries again.
struct moves_fail : rl::test_suite<moves_fail, 3>, two_channels<model::fragile> {
  model::fiber fibers[3];
  int sum = 0;

  void before() {
    bias();
    model::fragile::failures = rl::rand(4);
  }
  void thread(unsigned id) {
    fibers[id].begin_late(&workers);
    if (id == 2) {
      const auto add = [&](const std::optional<model::fragile>& value) {
        RL_ASSERT(value);
        sum += value->inside.number();
      };
      for (int i = 0; i < 2; ++i)
        model::until_done([&] { ulexite::select(on_receive(at[0], add), on_receive(at[1], add)); });
    } else {
      model::fragile value(static_cast<int>(id) + 1);
      model::until_done(
          [&] { id == 0 ? void(ulexite::select(on_send(at[0], value))) : void(model::send(at[1], value)); });
    }
    fibers[id].finish();
  }
  void after() { RL_ASSERT(sum == 3); }
};

int main() {
  constexpr unsigned interleavings = 35'000;
  return model::holds<two_partners>(interleavings) && model::holds<four_reasons>(interleavings) &&
                 model::holds<face_to_face>(interleavings) && model::holds<moves_fail>(interleavings)
             ? 0
             : 1;
}
