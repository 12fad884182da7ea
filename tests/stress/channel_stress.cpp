// Random topologies of senders and receivers, fibers and plain threads, with time-outs, cancellations and closes. Every
// value that was sent arrives once.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct board : ledger {
  channel<std::uint64_t> values;

  board(program& test, std::size_t capacity) : ledger(test), values(capacity) {}

  void send_some(std::uint64_t seed, int count) {
    detail::random random(seed);
    for (int i = 0; i < count; ++i) {
      std::uint64_t value = random.below(1000);
      const std::uint64_t kept = value;
      channel_status status = channel_status::ok;
      switch (random.below(4)) {
        case 0: status = values.try_send(value); break;
        case 1: status = values.send_for(value, std::chrono::microseconds(random.below(100))); break;
        case 2: this_fiber::yield(); [[fallthrough]];
        default: status = values.send_until(value, std::chrono::steady_clock::time_point::max());
      }
      if (status == channel_status::ok) note_sent(kept);
      if (status == channel_status::closed) return;
    }
  }

  void receive_some(std::uint64_t seed) {
    detail::random random(seed);
    for (;;) {
      std::uint64_t value = 0;
      channel_status status = channel_status::ok;
      switch (random.below(4)) {
        case 0: status = values.try_receive(value); break;
        case 1: status = values.receive_for(value, std::chrono::microseconds(random.below(100))); break;
        case 2: this_fiber::yield(); [[fallthrough]];
        default:
          if (const auto got = values.receive()) {
            value = *got;
          } else {
            status = channel_status::closed;
          }
      }
      if (status == channel_status::ok) note_received(value);
      if (status == channel_status::closed) return;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_a_runtime_each([&](runtime& rt, detail::random& random) {
    const std::size_t capacities[] = {0, 0, 1, 2, 7, 64, unbounded};
    board one(test, capacities[random.below(7)]);
    const int each = 1 + static_cast<int>(random.below(500));
    std::vector<join_handle<>> senders, receivers;
    std::vector<std::thread> sending, receiving;
    const auto few = [&](std::uint32_t most) { return random.below(most); };
    for (std::uint32_t i = 0, n = 1 + few(8); i < n; ++i)
      receivers.push_back(rt.spawn([&, seed = random.next()] { one.receive_some(seed); }));
    for (std::uint32_t i = 0, n = few(3); i < n; ++i)
      receiving.emplace_back([&, seed = random.next()] { one.receive_some(seed); });
    for (std::uint32_t i = 0, n = 1 + few(8); i < n; ++i)
      senders.push_back(rt.spawn([&, seed = random.next()] { one.send_some(seed, each); }));
    for (std::uint32_t i = 0, n = few(3); i < n; ++i)
      sending.emplace_back([&, seed = random.next()] { one.send_some(seed, each); });

    const bool early_close = random.below(4) == 0, cancel_senders = random.below(4) == 0;
    if (cancel_senders)
      for (auto& sender : senders)
        if (random.below(2) == 0) sender.request_stop();
    if (early_close) one.values.close();
    for (auto& sender : senders) get_unless_cancelled(sender);
    for (auto& thread : sending) thread.join();
    one.values.close();
    for (auto& receiver : receivers) receiver.get();
    for (auto& thread : receiving) thread.join();
    one.check();
  });
}
