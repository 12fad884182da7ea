// Fibers and plain threads that select over shared channels in random ways, with time-outs, cancellations and closes.
// Every value that was sent arrives once.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>

#include <array>
#include <deque>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

constexpr std::size_t channels = 4;

struct board : ledger {
  std::deque<channel<std::uint64_t>> values;
  std::stop_source stop;  // of the senders

  board(program& test, detail::random& random) : ledger(test) {
    const std::size_t capacities[] = {0, 0, 0, 1, 2, 16, unbounded};
    for (std::size_t i = 0; i < channels; ++i) values.emplace_back(capacities[random.below(7)]);
  }

  void close() {
    for (auto& each : values) each.close();
  }
  channel<std::uint64_t>& any(detail::random& random) { return values[random.below(channels)]; }

  // One select that may send, and may receive as well: sometimes it meets its like.
  void send_one(detail::random& random, std::uint64_t& value, bool& done) {
    const std::uint64_t kept = value;
    const auto note = [&] {
      note_sent(kept);
      done = true;
    };
    const auto also = [&](std::optional<std::uint64_t> got) {
      if (got) note_received(*got);
    };
    select(on_send(any(random), value, note), on_send(any(random), kept, note),
           when(random.below(4) == 0, on_receive(any(random), also)),
           when(random.below(4) == 0, after(std::chrono::microseconds(random.below(100)))),
           when(random.below(8) == 0, otherwise()), on_stop(stop.get_token(), [&] { done = true; }));
  }

  void send_some(std::uint64_t seed, int count) {
    detail::random random(seed);
    try {
      for (int i = 0; i < count && !stop.stop_requested(); ++i) {
        std::uint64_t value = random.below(1000);
        for (bool done = false; !done;) send_one(random, value, done);
      }
    } catch (const channel_closed&) {
    }
  }

  void receive_by_select(std::uint64_t seed) {
    detail::random random(seed);
    std::array<bool, channels> open{true, true, true, true};
    const auto from = [&](std::size_t i) {
      return [this, &open, i](std::optional<std::uint64_t> got) {
        if (got) {
          note_received(*got);
        } else {
          open[i] = false;
        }
      };
    };
    while (open[0] || open[1] || open[2] || open[3])
      select(when(open[0], on_receive(values[0], from(0))), when(open[1], on_receive(values[1], from(1))),
             when(open[2], on_receive(values[2], from(2))), when(open[3], on_receive(values[3], from(3))),
             when(random.below(4) == 0, after(std::chrono::microseconds(random.below(100)))),
             when(random.below(8) == 0, otherwise()));
  }

  void receive_by_selector(std::uint64_t seed) {
    detail::random random(seed);
    selector<std::uint64_t> cases;
    for (auto& each : values) cases.add_receive(each);
    for (std::size_t open = channels; open > 0;) {
      const auto got = random.below(2) == 0 ? cases.wait_for(std::chrono::microseconds(random.below(100)))
                                            : std::optional(cases.wait());
      if (!got) continue;
      if (got->value) {
        note_received(*got->value);
      } else {
        cases.disable(got->index);
        --open;
      }
    }
  }

  void receive_some(std::uint64_t seed) { seed % 2 == 0 ? receive_by_select(seed) : receive_by_selector(seed); }
};

// Waits for the fibers in whichever order they end, by a select over them two at a time.
void join_all(std::vector<join_handle<>>& fibers) {
  while (fibers.size() > 1) {
    const std::size_t last = fibers.size() - 1;
    const std::size_t ended = select(on_join(fibers[last]), on_join(fibers[last - 1]));
    get_unless_cancelled(fibers[last - ended]);
    fibers.erase(fibers.begin() + static_cast<std::ptrdiff_t>(last - ended));
  }
  for (auto& fiber : fibers) get_unless_cancelled(fiber);
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_a_runtime_each([&](runtime& rt, detail::random& random) {
    board one(test, random);
    const int each = 1 + static_cast<int>(random.below(300));
    std::vector<join_handle<>> senders, receivers, cancelled;
    std::vector<std::thread> sending, receiving;
    const auto start = [&](auto& where, std::uint32_t count, auto work) {
      for (; count > 0; --count) where.push_back(rt.spawn([work, seed = random.next()] { work(seed); }));
    };
    const auto start_threads = [&](auto& where, std::uint32_t count, auto work) {
      for (; count > 0; --count) where.emplace_back([work, seed = random.next()] { work(seed); });
    };
    const auto receive = [&one](std::uint64_t seed) { one.receive_some(seed); };
    const auto send = [&one, each](std::uint64_t seed) { one.send_some(seed, each); };
    start(receivers, 1 + random.below(8), receive);
    start(cancelled, random.below(8), receive);
    start_threads(receiving, random.below(3), receive);
    start(senders, 1 + random.below(8), send);
    start_threads(sending, random.below(3), send);

    for (auto& receiver : cancelled) {
      if (random.below(2) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
      receiver.request_stop();
    }
    switch (random.below(6)) {
      case 0: one.close(); break;
      case 1: one.values[random.below(channels)].close(); break;
      case 2: one.stop.request_stop(); break;
      case 3:
        for (auto& sender : senders)
          if (random.below(2) == 0) sender.request_stop();
        break;
      default: break;
    }
    join_all(senders);
    for (auto& thread : sending) thread.join();
    one.close();
    join_all(receivers);
    join_all(cancelled);
    for (auto& thread : receiving) thread.join();
    one.check();
  });
}
