// Hangs that something outside could end: no deadlock for certain, so a dump is asked for.

#include "hang.hpp"

#include <latch>
#include <mutex>
#include <thread>

namespace ulexite::hangs {
namespace {

using namespace std::chrono_literals;

void silent_peer(runtime& rt) {
  rt.run([] {
    net::tcp_listener listener(net::endpoint::parse("127.0.0.1:0"));
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    net::tcp_stream served = listener.accept();
    spawn({.name = "served"}, [&] {
      std::byte room[8];
      served.read_some(room);
    }).join();
  });
}

void nobody_connects(runtime& rt) {
  rt.run([] {
    net::tcp_listener listener(net::endpoint::parse("127.0.0.1:0"));
    spawn({.name = "acceptor"}, [&] { listener.accept(); }).join();
  });
}

void timer_far_away(runtime& rt) {
  rt.run([] { spawn({.name = "sleeper"}, [] { this_fiber::sleep_for(24h); }).join(); });
}

void blocking_call_that_hangs(runtime& rt) {
  rt.run([] { spawn({.name = "caller"}, [] { blocking([] { std::this_thread::sleep_for(24h); }); }).join(); });
}

void exhausted_blocking_pool(runtime& rt) {
  rt.run([] {
    task_group all;
    for (int i = 0; i < 3; ++i)
      all.spawn(fiber_options{.name = "caller"}, [] { blocking([] { std::this_thread::sleep_for(24h); }); });
    all.wait();
  });
}

void stuck_worker(runtime& rt) {
  rt.run([] {
    spawn({.name = "hog"}, [] {
      for (volatile bool forever = true; forever;) {
      }
    }).join();
  });
}

void held_by_a_thread(runtime& rt) {
  static mutex guard;
  std::latch held(1);
  std::thread holder([&held] {
    guard.lock();
    held.count_down();
    std::this_thread::sleep_for(24h);
  });
  held.wait();
  rt.run([] { spawn({.name = "waiter"}, [] { const std::lock_guard lock(guard); }).join(); });
}

}  // namespace

std::initializer_list<hang> hangs_from_outside() {
  static const std::initializer_list<hang> all = {
      {"silent_peer", silent_peer, {"\"served\": waits", "to read descriptor"}, true},
      {"nobody_connects", nobody_connects, {"\"acceptor\": waits", "to read descriptor"}, true},
      {"timer_far_away", timer_far_away, {"\"sleeper\": waits", "in a sleep"}, true},
      {"blocking_call_that_hangs", blocking_call_that_hangs, {"\"caller\": waits", "for a blocking call"}, true},
      {"exhausted_blocking_pool",
       exhausted_blocking_pool,
       {"2 threads for blocking calls (1 call waits for one)", "\"caller\" and 2 more", "for a blocking call"},
       true},
      {"stuck_worker", stuck_worker, {"runs fiber #", "\"hog\" for ", "without a switch"}, true},
      {"held_by_a_thread", held_by_a_thread, {"a plain thread holds mutex 0x", "\"waiter\": waits", "for mutex"}, true},
  };
  return all;
}

}  // namespace ulexite::hangs
