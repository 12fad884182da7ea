// The channel under Relacy, with the biased lock of its fast path: the text that ships. A value is in exactly one
// place, values arrive in their order, and no waiter sleeps for ever.
//
// MUTANT: taken_unclaimed   a receive takes the value of a sender whose wait is over
//   sync/channel.hpp: if (const detail::claimed_wait sender = senders_.claim_oldest()) => if (const detail::claimed_wait sender = model::claim_anyhow(senders_))
// MUTANT: senders_forgotten a close does not end the waits of senders
//   sync/channel.hpp: queue : {&senders_, &receivers_}) => queue : {&receivers_})
// MUTANT: enters_late       the lock is released between the attempt and the queue
//   sync/channel.hpp: queue.push(node);\n => held.unlock();\n    held.lock();\n    queue.push(node);\n
// MUTANT: left_linked       a waiter whose time is over leaves its node in the queue
//   sync/channel.hpp: detail::wait_queue::remove(node);\n =>
//   sync/channel.hpp: detail::wait_node node(*self.agent, slot); => model::left_behind<detail::wait_node> left(*self.agent, slot); auto& node = left.node;
// MUTANT: leaves_unguarded  a waiter whose time is over leaves the queue without the lock
//   sync/channel.hpp: const auto lock = guard(detail::this_caller().worker);\n      detail::wait_queue::remove(node); => detail::wait_queue::remove(node);
// MUTANT: worker_kept       it takes the lock as the worker on which it began to wait, which now runs another fiber
//   sync/channel.hpp: guard(detail::this_caller().worker);\n      detail::wait_queue::remove(node); => guard(self.worker);\n      detail::wait_queue::remove(node);
// MUTANT: again_is_closed   a waiter whose value could not be moved takes that for the close
//   sync/channel.hpp: outcome::again: return channel_status::would_block; => outcome::again: return channel_status::closed;
// MUTANT: again_not_resumed a sender whose value could not be moved sleeps on, if the next is served
//   sync/channel.hpp: if (wake) resume(*wake);  // the => // the
//
// The fast path:
// MUTANT: receiver_passed   a send puts its value into the buffer, although a receiver waits
//   sync/channel.hpp: || closed_ || !receivers_.empty()) => || closed_)
// MUTANT: sender_passed     a receive makes room, although a sender waits for it
//   sync/channel.hpp: if (buffer_.empty() || !senders_.empty()) return receive_slow => if (buffer_.empty()) return receive_slow
// MUTANT: close_passed      a send does not see the close
//   sync/channel.hpp: || closed_ || !receivers_.empty()) => || !receivers_.empty())
// MUTANT: capacity_passed   a send puts its value into a full buffer
//   sync/channel.hpp: if (buffer_.size() >= capacity_ || buffer_.full() => if (buffer_.full()
// MUTANT: stop_passed       a fiber that was asked to stop sends
//   sync/channel.hpp: && !detail::may_have_to_stop(*self) && => &&
// MUTANT: held_unlocked     a fiber that found the buffer full tries again with the lock released
//   sync/channel.hpp: return send_slow(value, deadline, &lock_.mine()); => return lock_.mine().unlock(), send_slow(value, deadline, &lock_.mine());
// MUTANT: bias_not_locked   the favoured worker does not lock its part
//   sync/channel.hpp: && lock_.lock_mine(worker); => ;
// MUTANT: bias_no_fence     it does not see that its bias was taken away (biased_lock.hpp A)
//   base/biased_lock.hpp: Atomics::light_fence(); =>
// MUTANT: bias_not_awaited  another does not wait for the favoured worker, which is inside
//   base/biased_lock.hpp: mine_.wait_until_free(); =>
// MUTANT: a_not_released    the next holder does not see what the last one wrote (spin_lock.hpp A)
// MUTANT: a_not_acquired    the same from the other end

#include "relacy_library.hpp"

enum class mutation {
  none,
  taken_unclaimed,
  senders_forgotten,
  enters_late,
  left_linked,
  leaves_unguarded,
  worker_kept,
  again_is_closed,
  again_not_resumed,
  receiver_passed,
  sender_passed,
  close_passed,
  capacity_passed,
  stop_passed,
  held_unlocked,
  bias_not_locked,
  bias_no_fence,
  bias_not_awaited,
  a_not_released,
  a_not_acquired
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                       model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>;

#include "relacy_agents.hpp"
#include "relacy_channels.hpp"

using model::parcel, model::status;

// A close between a sender, which may have a time limit or be asked to stop, and a receiver. The buffer may be full.
// The receiver may be missing, and the close, if the receive must let the sender go on.
struct close_meets_both : rl::test_suite<close_meets_both, 4> {
  static constexpr int number = 5, before_it = 9;

  model::workers workers;
  model::fiber fibers[3];
  std::optional<ulexite::channel<parcel>> at;
  parcel sent{number}, received;
  status how[2] = {};
  bool stops = false, is_timed = false, is_filled = false, receives = false, closes = false;

  void before() {
    const unsigned capacity = rl::rand(2);
    is_filled = capacity == 1 && rl::rand(2);
    stops = rl::rand(2);
    is_timed = !stops && rl::rand(2);
    receives = rl::rand(4) != 0;
    closes = !(is_filled && receives) || rl::rand(2);
    at.emplace(capacity);
    model::channel_before first(workers);
    first.bias(*at);
    parcel filling(before_it);
    if (is_filled) RL_ASSERT(at->try_send(filling) == ulexite::channel_status::ok);
  }
  void thread(unsigned id) {
    if (id == 3) {
      if (stops) fibers[0].stop();
      if (is_timed) fibers[0].fire();
      return;
    }
    fibers[id].begin_late(rl::rand(4) ? &workers : nullptr);
    switch (id) {
      case 0: how[0] = model::send(*at, sent, is_timed); break;
      case 1:
        if (receives) how[1] = model::receive(*at, received);
        break;
      default: RL_ASSERT(!closes || at->close());
    }
    fibers[id].finish();
  }
  // What was sent before the close is received, even after it.
  void after() {
    const bool passed = how[0] == status::ok;
    RL_ASSERT(!receives || how[1] == (passed || is_filled ? status::ok : status::closed));
    RL_ASSERT(how[0] != status::timeout || is_timed);
    RL_ASSERT(how[0] != status::cancelled || stops);
    RL_ASSERT(sent.number() == (passed ? 0 : number));
    fibers[1].begin();
    for (const int expected : {is_filled ? before_it : 0, passed ? number : 0}) {
      if (expected == 0) continue;
      if (received.number() == 0) RL_ASSERT(at->try_receive(received) == ulexite::channel_status::ok);
      RL_ASSERT(received.number() == expected);
      parcel over(std::move(received));
    }
    RL_ASSERT(received.number() == 0 && at->try_receive(received) == (closes ? ulexite::channel_status::closed
                                                                             : ulexite::channel_status::would_block));
  }
};

// One sends numbers and closes, another receives them, a third may take one of them. At last the sender is asked to
// stop.
struct values_in_order : rl::test_suite<values_in_order, 3> {
  static constexpr int count = 3;

  model::workers workers;
  model::fiber fibers[3];
  std::optional<ulexite::channel<parcel>> at;
  int received[2] = {};

  void before() {
    at.emplace(1 + rl::rand(2));
    model::channel_before(workers).bias(*at);
  }
  void thread(unsigned id) {
    fibers[id].begin_late(&workers);
    switch (id) {
      case 0: {
        for (int number = 1; number <= count; ++number) at->send(parcel(number));
        RL_ASSERT(at->close());
        parcel late(9);
        RL_ASSERT(at->try_send(late) == ulexite::channel_status::closed);
        fibers[0].word.request_stop();
        RL_ASSERT(model::send(*at, late) == status::cancelled);
        break;
      }
      case 1: {
        int last = 0;
        for (const parcel& each : *at) {
          RL_ASSERT(each.number() > last);
          last = each.number();
          ++received[0];
        }
        break;
      }
      default:
        RL_ASSERT(at->size() <= at->capacity());
        parcel taken;
        if (at->try_receive(taken) == ulexite::channel_status::ok) received[1] = 1;
    }
    fibers[id].finish();
  }
  void after() { RL_ASSERT(received[0] + received[1] == count); }
};

// Values whose moves fail now and then: then the caller has the exception and tries again, and a partner that waits
// does so by itself.
struct moves_fail : rl::test_suite<moves_fail, 3> {
  model::workers workers;
  model::fiber fibers[3];
  std::optional<ulexite::channel<model::fragile>> at;
  bool is_filled = false;
  int sum = 0;

  void before() {
    is_filled = rl::rand(2);
    at.emplace(is_filled || rl::rand(2));
    model::channel_before first(workers);
    first.bias(*at);
    model::fragile::failures = 0;
    if (is_filled) at->send(model::fragile(3));
    model::fragile::failures = rl::rand(4);
  }
  void thread(unsigned id) {
    fibers[id].begin_late(&workers);
    if (id < 2) {
      model::fragile value(static_cast<int>(id) + 1);
      model::until_done([&] { RL_ASSERT(model::send(*at, value) == status::ok); });
    } else {
      for (int i = is_filled ? 0 : 1; i < 3; ++i)
        model::until_done([&] {
          const auto value = at->receive();
          RL_ASSERT(value.has_value());
          sum += value->inside.number();
        });
    }
    fibers[id].finish();
  }
  void after() { RL_ASSERT(sum == (is_filled ? 6 : 3)); }
};

int main() {
  constexpr unsigned interleavings = 35'000;
  return model::holds<close_meets_both>(interleavings) && model::holds<values_in_order>(interleavings) &&
                 model::holds<moves_fail>(interleavings)
             ? 0
             : 1;
}
