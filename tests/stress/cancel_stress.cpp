// Values, time-outs and requests to stop race for the same waits. Exactly one of them wins each, so nothing is lost or
// doubled. A runtime that is cancelled, or stopped, in the middle of this ends.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

// Each sender's value is received by a receiver, or kept. A stopped fiber reports it by an exception.
void race(program& test, runtime& rt, detail::random& random) {
  channel<int> values(random.below(3) == 0 ? 1 : 0);
  std::atomic<int> sent{0}, received{0};
  const std::uint32_t count = 1 + random.below(4);
  std::vector<join_handle<>> fibers;
  for (std::uint32_t i = 0; i < count; ++i) {
    fibers.push_back(rt.spawn([&, time = random.below(60)] {
      int value = 1;
      if (values.send_for(value, std::chrono::microseconds(time)) == channel_status::ok) ++sent;
    }));
    fibers.push_back(rt.spawn([&, time = random.below(60)] {
      int value = 0;
      if (values.receive_for(value, std::chrono::microseconds(time)) == channel_status::ok) ++received;
    }));
    fibers.push_back(rt.spawn([time = random.below(60)] { this_fiber::sleep_for(std::chrono::microseconds(time)); }));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (random.below(2) == 0) std::this_thread::yield();
    fibers[random.below(static_cast<std::uint32_t>(fibers.size()))].request_stop();
  }
  for (auto& fiber : fibers) try {
      fiber.get();
    } catch (const operation_cancelled&) {
    }
  int left = 0, rest = 0;
  while (values.try_receive(rest) == channel_status::ok) ++left;
  test.check(sent == received + left, "values lost or doubled", sent - received - left);
  test.moved();
}

// Ends a runtime in the midst of everything.
void end_busy(program& test, detail::random& random) {
  runtime rt({.threads = test.threads});
  channel<int> values(2);
  mutex guard;
  wait_group never(1);
  std::atomic<long> passed{0};
  for (std::uint32_t i = 0, n = 1 + random.below(6); i < n; ++i) {
    rt.spawn([&] {
        for (;;) values.send(1);
      }).detach();
    rt.spawn([&] {
        for (;; ++passed) values.receive();
      }).detach();
    rt.spawn([&] { never.wait(); }).detach();
    rt.spawn([&, time = random.below(50)] {
        for (;;) {
          const std::lock_guard lock(guard);
          this_fiber::sleep_for(std::chrono::microseconds(time));
        }
      }).detach();
    rt.spawn([&] {
        for (;;) {
          spawn([] { this_fiber::yield(); }).join();
          this_fiber::check();
        }
      }).detach();
  }
  while (passed < 20) std::this_thread::yield();
  const std::size_t left = rt.shutdown(shutdown_mode::cancel);
  test.check(left == 0, "fibers were abandoned by a cancel", static_cast<long long>(left));
  test.check_metrics(rt, true);
  test.moved();
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_one_runtime([&](runtime& rt, detail::random& random) {
    for (int i = 0; i < 100; ++i) race(test, rt, random);
    end_busy(test, random);
  });
}
