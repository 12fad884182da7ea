// Fibers that block their threads, in the pool, in place and in brief calls, between waits, yields, failures, stops and
// deadlines. The pools are too small, threads end, and runtimes end in the middle. A thread takes the workers of brief
// calls all the time, because the monitor does so too seldom.

#include "stress/stress.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker_parts/brief_call.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>

#include <mutex>
#include <stdexcept>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct failed : std::runtime_error {
  failed() : std::runtime_error("a call failed") {}
};

class house {
 public:
  explicit house(program& test) : test_(test) {}

  void live(detail::random random) {
    const auto id = this_fiber::id();
    for (int i = 0; i < 12; ++i) {
      test_.moved();
      act(random);
      test_.check(this_fiber::id() == id, "a fiber is another", static_cast<long long>(this_fiber::id()));
      test_.check(std::uncaught_exceptions() == 0, "an exception is left over", std::uncaught_exceptions());
    }
  }

  [[nodiscard]] int inside() const { return inside_; }
  void close() { channel_.close(); }

 private:
  struct counted {
    explicit counted(house& h) : of(h) { ++of.inside_; }
    ~counted() { --of.inside_; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    house& of;
  };

  int call(std::uint64_t seed) {
    const counted here(*this);
    test_.check(!in_fiber(), "a blocking call runs as a fiber");
    detail::random random(seed);
    if (random.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
    if (random.below(6) == 0) {
      int one = 1;
      static_cast<void>(channel_.try_send(one));
    }
    if (random.below(8) == 0) {
      const std::lock_guard lock(mutex_);
      std::this_thread::yield();
    }
    if (random.below(10) == 0) throw failed();
    return static_cast<int>(seed & 0xffff);
  }

  // What such a call may do.
  int brief(std::uint64_t seed) {
    int result = 0;
    const auto call = [&] {
      const counted here(*this);
      if (seed % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(seed / 4 % 200));
      if (seed % 4 == 1) std::this_thread::yield();
      result = static_cast<int>(seed & 0xffff);
    };
    if (detail::brief_call(call) == detail::call_length::not_made) call();
    test_.check(in_fiber(), "after a brief call this is no fiber");
    return result;
  }

  void act(detail::random& random) {
    const std::uint64_t seed = random.next();
    const int expected = static_cast<int>(seed & 0xffff);
    switch (random.below(10)) {
      case 0:
      case 1: return expect(expected, [&] { return blocking([&] { return call(seed); }); });
      case 2:
      case 3: return expect(expected, [&] { return block_in_place([&] { return call(seed); }); });
      case 4: return this_fiber::yield();
      case 5: return this_fiber::sleep_for(std::chrono::microseconds(random.below(100)));
      case 6: {
        const std::lock_guard lock(mutex_);
        return this_fiber::yield();
      }
      case 7:
      case 8: return expect(expected, [&] { return brief(seed); });
      default: {
        int value = 0;
        static_cast<void>(channel_.receive_for(value, 20us));
      }
    }
  }

  template <class F>
  void expect(int value, F call) {
    try {
      const int got = call();
      test_.check(got == value, "a blocking call gave another's value", got);
    } catch (const failed&) {
    }
  }

  program& test_;
  std::atomic<int> inside_{0};
  channel<int> channel_{2};
  mutex mutex_;
};

void grow(program& test, house& house, detail::random random) {
  task_group group(on_error::keep_going);
  for (std::uint32_t i = 0, n = 1 + random.below(20); i < n; ++i)
    group.spawn([&house, seed = random.next()] { house.live(detail::random(seed)); });
  if (random.below(3) == 0) group.request_stop();
  test.moved();
  try {
    if (random.below(3) == 0) {
      timeout(std::chrono::microseconds(random.below(1000)), [&] { group.wait(); });
    } else {
      group.wait();
    }
  } catch (const operation_cancelled&) {
  }
}

// As the monitor, but not only for calls that last.
void take_workers(runtime& of, detail::random random) {
  block_in_place([&] {
    for (std::uint32_t i = 0, n = random.below(50); i < n; ++i) {
      for (const auto& each : detail::state_of(of).schedulers) each->relieve_call();
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(60)));
    }
  });
}

void one_runtime(program& test, detail::random& random) {
  house home(test);
  runtime rt({.threads = test.threads,
              .blocking_threads = 1 + random.below(4),
              .blocking_keep_alive = std::chrono::milliseconds(random.below(3)),
              .on_unhandled_exception = [](auto&) {}});
  test.show(&rt);
  for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i)
    rt.spawn([&, seed = random.next()] { grow(test, home, detail::random(seed)); }).detach();
  rt.spawn([&, seed = random.next()] { take_workers(rt, detail::random(seed)); }).detach();
  if (random.below(2) == 0) rt.run([&, seed = random.next()] { grow(test, home, detail::random(seed)); });
  for (std::uint32_t i = 0, n = random.below(100); i < n; ++i) std::this_thread::yield();
  const auto mode = random.below(2) == 0 ? shutdown_mode::cancel : shutdown_mode::drain;
  const std::size_t left = rt.shutdown(mode);
  test.check(left == 0, "fibers were abandoned", static_cast<long long>(left));
  test.check(home.inside() == 0, "blocking calls are left", home.inside());
  test.check_metrics(rt, true);
  const std::size_t threads = rt.metrics().blocking_threads;
  test.check(threads == 0, "threads are left in the pool", static_cast<long long>(threads));
  test.show(nullptr);
  test.moved();
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  while (test.another_round()) {
    detail::random random = test.random();
    one_runtime(test, random);
  }
  return test.report();
}
