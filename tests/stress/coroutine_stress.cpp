// Coroutines, fibers and plain threads mixed over channels, a mutex, a condition variable, selects, timers and joins,
// with cancellations, deadlines and closes. Every value that was sent arrives once, and every frame is destroyed.

#include "stress/stress.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

constexpr std::size_t channels = 3;

class frame {
 public:
  explicit frame(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  ~frame() { --alive_; }

 private:
  std::atomic<int>& alive_;
};

struct board : ledger {
  program& test;
  std::deque<channel<std::uint64_t>> values;
  std::atomic<int> alive{0};
  mutex guard;
  condition_variable changed;
  std::uint64_t number = 0, added = 0;  // under guard: tokens that are there, and that have been added

  board(program& p, detail::random& random) : ledger(p), test(p) {
    const std::size_t capacities[] = {0, 0, 1, 2, 16, unbounded};
    for (std::size_t i = 0; i < channels; ++i) values.emplace_back(capacities[random.below(6)]);
  }
  channel<std::uint64_t>& any(detail::random& random) { return values[random.below(channels)]; }
  static std::chrono::microseconds soon(detail::random& random) { return std::chrono::microseconds(random.below(200)); }

  // One send in some way. A value that a time-out or a cancellation kept back does not count.
  task<> send_one(detail::random& random) {
    std::uint64_t value = random.below(1000);
    const std::uint64_t kept = value;
    bool sent = false;
    switch (random.below(4)) {
      case 0:
        co_await co_send(any(random), value);
        sent = true;
        break;
      case 1: sent = co_await co_send_for(any(random), value, soon(random)) == channel_status::ok; break;
      case 2:
        co_await co_select(on_send(any(random), value, [&] { sent = true; }),
                           on_send(any(random), kept, [&] { sent = true; }), after(soon(random)));
        break;
      default: {
        const deadline_scope limit(soon(random));
        try {
          co_await co_send(any(random), value);
          sent = true;
        } catch (const deadline_exceeded&) {
        }
      }
    }
    if (sent) note_sent(kept);
  }
  task<> send_some(std::uint64_t seed, int count) {
    const frame here(alive);
    detail::random random(seed);
    try {
      for (int i = 0; i < count; ++i) {
        co_await send_one(random);
        if (random.below(16) == 0) co_await co_yield_now();
      }
    } catch (const channel_closed&) {
    }
  }

  // Until all channels are closed and drained.
  task<> receive_all(std::uint64_t seed) {
    const frame here(alive);
    detail::random random(seed);
    std::array<bool, channels> open{true, true, true};
    const auto from = [&](std::size_t i) {
      return [this, &open, i](std::optional<std::uint64_t> got) { got ? note_received(*got) : void(open[i] = false); };
    };
    while (open[0] || open[1] || open[2]) {
      if (random.below(3) == 0) {
        const std::size_t i = random.below(channels);
        if (!open[i]) continue;
        std::uint64_t value = 0;
        const channel_status how = co_await co_receive_for(values[i], value, soon(random));
        if (how == channel_status::ok) note_received(value);
        if (how == channel_status::closed) open[i] = false;
      } else {
        co_await co_select(when(open[0], on_receive(values[0], from(0))), when(open[1], on_receive(values[1], from(1))),
                           when(open[2], on_receive(values[2], from(2))), after(soon(random)));
      }
    }
  }

  // Adds tokens, and takes as many. Nobody who can be cancelled holds one over a wait.
  task<> add_tokens(int count) {
    const frame here(alive);
    for (int i = 0; i < count; ++i) {
      const auto lock = co_await co_lock(guard);
      ++number;
      ++added;
      if (i % 7 == 0) co_await co_yield_now();
      changed.notify_one();
    }
  }
  task<> take_tokens(std::uint64_t seed, int count) {
    const frame here(alive);
    detail::random random(seed);
    for (int i = 0; i < count; ++i) {
      auto lock = co_await co_lock(guard);
      while (number == 0) {
        if (random.below(2) == 0) {
          co_await co_wait(changed, lock);
        } else {
          (void)co_await co_wait_for(changed, lock, soon(random));
        }
      }
      --number;
      test.moved();
    }
  }

  // Waits for ever at all kinds of things, until it is stopped.
  task<> wait_for_ever(std::uint64_t seed) {
    const frame here(alive);
    detail::random random(seed);
    event never;
    for (;;) {
      switch (random.below(4)) {
        case 0: co_await co_sleep_for(soon(random)); break;
        case 1: (void)co_await co_wait_for(never, soon(random)); break;
        case 2: co_await co_get(spawn([]() -> task<> { co_await co_yield_now(); })); break;
        default: co_await co_wait(never);
      }
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_a_runtime_each([&](runtime& rt, detail::random& random) {
    board one(test, random);
    const int each = 1 + static_cast<int>(random.below(200));
    const auto some = [&](std::uint32_t most) { return 1 + static_cast<int>(random.below(most)); };
    // As a coroutine, or in a fiber that keeps its stack.
    const auto start = [&](auto body) {
      if (random.below(3) > 0) return rt.spawn(body);
      return rt.spawn([body] { await(body()); });
    };
    std::vector<join_handle<>> senders, receivers, takers, stopped;
    std::vector<std::thread> threads;
    for (int i = some(6); i > 0; --i)
      receivers.push_back(start([&, seed = random.next()] { return one.receive_all(seed); }));
    for (int i = some(6); i > 0; --i)
      senders.push_back(start([&, seed = random.next()] { return one.send_some(seed, each); }));
    if (random.below(2) == 0) threads.emplace_back([&, seed = random.next()] { await(one.send_some(seed, each)); });
    for (int i = some(4); i > 0; --i) {
      takers.push_back(start([&, seed = random.next()] { return one.take_tokens(seed, each); }));
      takers.push_back(start([&] { return one.add_tokens(each); }));
    }
    for (int i = some(fibers(40)); i > 0; --i)
      stopped.push_back(start([&, seed = random.next()] { return one.wait_for_ever(seed); }));

    if (random.below(3) == 0)
      for (auto& sender : senders)
        if (random.below(2) == 0) sender.request_stop();
    if (random.below(8) == 0) one.any(random).close();
    for (auto& each_stopped : stopped) {
      if (random.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(100)));
      each_stopped.request_stop();
    }
    for (auto& sender : senders) get_unless_cancelled(sender);
    for (auto& thread : threads) thread.join();
    for (auto& each_channel : one.values) each_channel.close();
    for (auto& receiver : receivers) receiver.get();
    for (auto& taker : takers) taker.get();
    for (auto& each_stopped : stopped) get_unless_cancelled(each_stopped);
    test.check(one.alive == 0, "frames are left", one.alive);
    test.check(one.number == 0, "tokens are left", static_cast<long long>(one.number));
    one.check();
  });
}
