// Channels and select under Relacy: a wait ends for exactly one reason, a value is in exactly one place, no fiber
// sleeps for ever. choose() and the channel are copies of channel.hpp and select_case.cpp, step by step.
//
// MUTANT: prepared_late       the word is prepared after the locks are released: a partner in between finds no waiter
// MUTANT: left_without_lock   the case leaves its queue while a partner serves it
// MUTANT: locked_one_by_one   each case is tried and entered under its own lock alone: a select that stands somewhere
//                             serves another
// MUTANT: locks_unordered     each select takes the locks in the order of its cases
// MUTANT: served_after_unlock a claimer writes the node of a waiter that is not asleep, and may have left
// MUTANT: taken_unclaimed     a close ends a wait that it has not claimed

#include <algorithm>
#include <span>

#include "relacy_fibers.hpp"

enum class mutation {
  none,
  prepared_late,
  left_without_lock,
  locked_one_by_one,
  locks_unordered,
  served_after_unlock,
  taken_unclaimed
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using fibers = model::fibers<model::relacy_atomics<>>;
using agent = fibers::agent;
using spin_lock = fibers::spin_lock;
using wait_node = fibers::wait_node;
using wait_queue = fibers::wait_queue;
using model::cancellable, model::timed, model::wake_reason;

// The work after the lock is released.
struct after_unlock {
  agent* who = nullptr;
  wait_node* to_be_served = nullptr;  // a mutant's

  void operator()() {
    if (to_be_served) to_be_served->result($) = fibers::served;
    if (who) who->resume();
  }
};

// ---- the channel ----

enum class status { ok, closed, would_block, timeout, cancelled };

// Of numbers above 0; 0 is a place without a value.
struct channel {
  spin_lock lock;
  int capacity = 0;  // 0 or 1
  rl::var<int> closed, buffer;
  wait_queue senders, receivers;

  channel() {
    closed($) = 0;
    buffer($) = 0;
  }

  static void move(rl::var<int>& from, rl::var<int>& to) {
    RL_ASSERT(int(from($)) != 0 && int(to($)) == 0);
    to($) = int(from($));
    from($) = 0;
  }
  static void serve(wait_node& partner, rl::var<int>& from, rl::var<int>& to, after_unlock& later) {
    move(from, to);
    if (mutant == mutation::served_after_unlock) {
      later.to_be_served = &partner;
    } else {
      partner.result($) = fibers::served;
    }
  }

  status send_now(rl::var<int>& value, after_unlock& later) {
    if (int(closed($))) return status::closed;
    if (const auto receiver = receivers.claim_oldest()) {
      later.who = receiver.who;
      serve(*receiver.node, value, *receiver.node->slot, later);
      return status::ok;
    }
    if (capacity == 0 || int(buffer($)) != 0) return status::would_block;
    move(value, buffer);
    return status::ok;
  }
  status receive_now(rl::var<int>& value, after_unlock& later) {
    if (int(buffer($)) != 0) {
      move(buffer, value);
      if (const auto sender = senders.claim_oldest()) {
        later.who = sender.who;
        serve(*sender.node, *sender.node->slot, buffer, later);
      }
      return status::ok;
    }
    if (const auto sender = senders.claim_oldest()) {
      later.who = sender.who;
      serve(*sender.node, *sender.node->slot, value, later);
      return status::ok;
    }
    return int(closed($)) ? status::closed : status::would_block;
  }
  status operate(bool sends, rl::var<int>& value, after_unlock& later) {
    return sends ? send_now(value, later) : receive_now(value, later);
  }

  // send and receive.
  status pass(bool sends, agent& self, wait_node& node, rl::var<int>& value, timed timed = timed::no) {
    if (self.word.stop_requested()) return status::cancelled;
    after_unlock later;
    lock.lock();
    const status done = operate(sends, value, later);
    if (done != status::would_block) {
      lock.unlock();
      later();
      return done;
    }
    node.begin(self, &value);
    switch (fibers::wait_in(sends ? senders : receivers, lock, node, cancellable::yes, timed)) {
      case wake_reason::timed_out: return status::timeout;
      case wake_reason::cancelled: return status::cancelled;
      default: break;
    }
    RL_ASSERT(int(node.result($)) != fibers::pending);
    return int(node.result($)) == fibers::served ? status::ok : status::closed;
  }
  bool try_pass(bool sends, rl::var<int>& value) {
    after_unlock later;
    lock.lock();
    const status done = operate(sends, value, later);
    lock.unlock();
    later();
    return done == status::ok;
  }

  void close() {
    agent* woken[4];
    int count = 0;
    lock.lock();
    if (!int(closed($))) {
      closed($) = 1;
      for (wait_queue* const queue : {&senders, &receivers})
        while (const auto claimed = claim_for_close(*queue)) {
          claimed.node->result($) = fibers::ended;
          if (claimed.who) woken[count++] = claimed.who;
        }
    }
    lock.unlock();
    for (int i = 0; i < count; ++i) woken[i]->resume();
  }
  static fibers::claimed_wait claim_for_close(wait_queue& queue) {
    if (mutant != mutation::taken_unclaimed) return queue.claim_oldest();
    wait_node* const node = queue.pop();
    if (!node) return {};
    return {node, node->who->word.claim(wake_reason::notified) == model::claim_result::won ? node->who : nullptr};
  }
};

// ---- select ----

struct select_case {
  channel* at = nullptr;
  bool sends = false, closed = false;
  rl::var<int> value;
  wait_node node;

  void set(channel& channel, bool is_send, int number = 0) {
    at = &channel;
    sends = is_send;
    value($) = number;
    node.result($) = fibers::pending;
  }
  bool attempt(after_unlock& later) {
    const status done = at->operate(sends, value, later);
    closed = done == status::closed;
    return done != status::would_block;
  }
  void enter(agent& self) {
    node.begin(self, &value);
    (sends ? at->senders : at->receivers).push(node);
  }
  bool leave() {
    (sends ? at->senders : at->receivers).remove(node);
    closed = int(node.result($)) == fibers::ended;
    return int(node.result($)) != fibers::pending;
  }
};

// Two cases.
struct selector {
  agent self;
  select_case cases[2];
  select_case* order[2];
  spin_lock* locks[2];
  std::span<spin_lock*> all;

  select_case* chosen = nullptr;  // null: `ended` says why
  status ended = status::ok;

  void lock_all() {
    for (spin_lock* const each : all) each->lock();
  }
  void unlock_all() {
    for (spin_lock* const each : all) each->unlock();
  }

  void choose(timed timed = timed::no) {
    if (self.word.stop_requested()) {
      ended = status::cancelled;
      return;
    }
    const unsigned first = rl::rand(2);
    order[0] = &cases[first];
    order[1] = &cases[1 - first];
    for (int i = 0; i < 2; ++i) locks[i] = &order[i]->at->lock;
    if (mutant != mutation::locks_unordered) std::sort(locks, locks + 2);
    all = std::span(locks, locks[0] == locks[1] ? 1 : 2);

    if (all.size() > 1 && (chosen = try_each(false))) return;
    if (mutant == mutation::locked_one_by_one) {
      self.word.prepare();
      if ((chosen = try_each(true))) {
        leave_all();
        return;
      }
    } else {
      lock_all();
      after_unlock later;
      for (select_case* const each : order)
        if (!chosen && each->attempt(later)) chosen = each;
      if (chosen) {
        unlock_all();
        later();
        return;
      }
      if (mutant != mutation::prepared_late) self.word.prepare();
      for (select_case* const each : order) each->enter(self);
      unlock_all();
      if (mutant == mutation::prepared_late) self.word.prepare();
    }
    const wake_reason reason = self.suspend(nullptr, cancellable::yes, timed);
    select_case* const left = leave_all();
    RL_ASSERT((left != nullptr) == (reason == wake_reason::notified));
    chosen = left;
    ended = reason == wake_reason::timed_out ? status::timeout : status::cancelled;
  }

  select_case* try_each(bool and_enter) {
    for (select_case* const each : order) {
      after_unlock later;
      each->at->lock.lock();
      const bool done = each->attempt(later);
      if (!done && and_enter) each->enter(self);
      each->at->lock.unlock();
      later();
      if (done) return each;
    }
    return nullptr;
  }

  select_case* leave_all() {
    select_case* left = nullptr;
    for (select_case* const each : order) {
      const bool locks = mutant != mutation::left_without_lock;
      if (locks) each->at->lock.lock();
      if (each->leave()) {
        RL_ASSERT(!left);
        left = each;
      }
      if (locks) each->at->lock.unlock();
    }
    return left;
  }

  bool passed(int which) { return chosen == &cases[which] && !chosen->closed; }
  bool met_close() { return chosen && chosen->closed; }
};

// One of two values is delivered. The sender of the other keeps it, and sees the end.
struct two_partners : rl::test_suite<two_partners, 3> {
  channel at[2];
  selector select;
  agent senders[2];
  wait_node nodes[2];
  rl::var<int> values[2];
  bool sent[2] = {}, second_tries_only = false;

  void before() {
    second_tries_only = rl::rand(2);
    for (int i = 0; i < 2; ++i) {
      at[i].capacity = 0;
      select.cases[i].set(at[i], false);
      values[i]($) = i + 1;
    }
  }
  void thread(unsigned id) {
    if (id == 0) {
      select.choose();
      RL_ASSERT(select.chosen && !select.chosen->closed);
      for (channel& each : at) each.close();
      return;
    }
    const unsigned i = id - 1;
    if (i == 1 && second_tries_only) {
      sent[i] = at[i].try_pass(true, values[i]);
    } else {
      const status how = at[i].pass(true, senders[i], nodes[i], values[i]);
      RL_ASSERT(how == status::ok || how == status::closed);
      sent[i] = how == status::ok;
    }
  }
  void after() {
    RL_ASSERT(sent[0] + sent[1] == 1);
    for (int i = 0; i < 2; ++i) {
      RL_ASSERT(sent[i] == select.passed(i));
      RL_ASSERT(int(values[i]($)) == (sent[i] ? 0 : i + 1));
      RL_ASSERT(int(select.cases[i].value($)) == (sent[i] ? i + 1 : 0));
    }
  }
};

// Some of these: a partner, a timer, a request to stop, the close of the other channel.
struct four_reasons : rl::test_suite<four_reasons, 4> {
  static constexpr int number = 7;
  channel at[2];
  selector select;
  agent partner;
  wait_node node;
  rl::var<int> value;
  bool sends = false, has_partner = false, has_timer = false, stops = false, closes = false;
  status how = status::would_block;

  void before() {
    sends = rl::rand(2);
    has_timer = rl::rand(2);
    const unsigned third = rl::rand(3);
    stops = third == 1;
    closes = third == 2;
    has_partner = rl::rand(2) || !(has_timer || stops || closes);
    select.cases[0].set(at[0], sends, sends ? number : 0);
    select.cases[1].set(at[1], false);
    value($) = sends ? 0 : number;
  }
  void thread(unsigned id) {
    switch (id) {
      case 0: {
        select.choose(has_timer ? timed::yes : timed::no);
        select.self.finish();
        for (channel& each : at) each.close();
        return;
      }
      case 1:
        if (has_partner) how = at[0].pass(!sends, partner, node, value);
        return;
      case 2:
        if (has_timer) select.self.fire();
        return;
      case 3:
        if (stops) select.self.stop();
        if (closes) at[1].close();
        return;
    }
  }
  void after() {
    const bool passed = select.passed(0);
    RL_ASSERT(!select.passed(1));
    RL_ASSERT(passed == (how == status::ok));
    RL_ASSERT(int(value($)) == (sends == passed ? number : 0));
    RL_ASSERT(int(select.cases[0].value($)) == (sends == passed ? 0 : number));
    if (passed) return;
    if (select.met_close()) {
      RL_ASSERT(closes && select.chosen == &select.cases[1]);
    } else {
      RL_ASSERT(select.ended == status::timeout ? has_timer : stops);
    }
  }
};

// Each select would send on one channel and receive on the other, or both on the same channel. None may serve itself.
// One of them may be asked to stop, and then it ends the other's wait.
struct face_to_face : rl::test_suite<face_to_face, 3> {
  channel at[2];
  selector select[2];
  bool same = false, stops = false;

  void before() {
    same = rl::rand(4) == 0;
    stops = rl::rand(3) == 0;
    channel& second = same ? at[0] : at[1];
    select[0].cases[0].set(at[0], true, 1);
    select[0].cases[1].set(second, false);
    select[1].cases[0].set(second, true, 2);
    select[1].cases[1].set(at[0], false);
  }
  void thread(unsigned id) {
    if (id == 2) {
      if (stops) select[0].self.stop();
      return;
    }
    select[id].choose();
    if (select[id].chosen) return;
    RL_ASSERT(stops && id == 0 && select[id].ended == status::cancelled);
    for (channel& each : at) each.close();
  }
  void after() {
    if (!select[0].chosen) {
      RL_ASSERT(select[1].met_close());
    } else {
      RL_ASSERT(!select[1].met_close());
      RL_ASSERT(select[0].passed(0) == select[1].passed(1) && select[0].passed(1) == select[1].passed(0));
    }
    for (int i = 0; i < 2; ++i) {
      RL_ASSERT(int(select[i].cases[0].value($)) == (select[i].passed(0) ? 0 : i + 1));
      RL_ASSERT(int(select[1 - i].cases[1].value($)) == (select[1 - i].passed(1) ? i + 1 : 0));
    }
  }
};

// A close between a receiver and a sender, which may have a time limit or be asked to stop. The buffer may be full.
struct close_meets_both : rl::test_suite<close_meets_both, 4> {
  static constexpr int number = 5, before_it = 9;
  channel at;
  agent fiber[2];
  wait_node nodes[2];
  rl::var<int> values[2];
  status how[2] = {};
  bool has_timer = false, stops = false, is_filled = false;

  void before() {
    at.capacity = rl::rand(2);
    is_filled = at.capacity == 1 && rl::rand(2);
    stops = rl::rand(2);
    has_timer = !stops && rl::rand(2);
    values[0]($) = number;
    values[1]($) = 0;
    if (is_filled) at.buffer($) = before_it;
  }
  void thread(unsigned id) {
    if (id == 2) {
      at.close();
    } else if (id == 3) {
      if (stops) fiber[0].stop();
      if (has_timer) fiber[0].fire();
    } else {
      const bool sends = id == 0;
      how[id] = at.pass(sends, fiber[id], nodes[id], values[id], sends && has_timer ? timed::yes : timed::no);
      fiber[id].finish();
    }
  }
  // A value sent before the close is received, even after it.
  void after() {
    const bool sent = how[0] == status::ok, received = how[1] == status::ok;
    RL_ASSERT(received || how[1] == status::closed);
    RL_ASSERT(how[0] != status::timeout || has_timer);
    RL_ASSERT(how[0] != status::cancelled || stops);
    RL_ASSERT(received == (sent || is_filled));
    RL_ASSERT(int(values[0]($)) == (sent ? 0 : number));
    RL_ASSERT(int(values[1]($)) == (is_filled ? before_it : sent ? number : 0));
    RL_ASSERT(int(at.buffer($)) == (is_filled && sent ? number : 0));
  }
};

int main() {
  constexpr unsigned interleavings = 600'000;
  const bool all = model::holds<two_partners>(interleavings) && model::holds<four_reasons>(interleavings) &&
                   model::holds<face_to_face>(interleavings) && model::holds<close_meets_both>(interleavings);
  return all ? 0 : 1;
}
