// Hangs that something outside could end: no deadlock for certain, so a dump is asked for.

#include "hang.hpp"

#include <latch>
#include <mutex>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace ulexite::hangs {
namespace {

using namespace std::chrono_literals;

void read_from_a_silent_peer(const std::string& address) {
  net::tcp_listener listener(net::endpoint::parse(address));
  const auto client = net::tcp_stream::connect(listener.local_endpoint());
  net::tcp_stream served = listener.accept();
  spawn({.name = "served"}, [&] {
    char room[8];
    served.read_some(room, sizeof room);
  }).join();
}

void silent_peer(runtime& rt) {
  rt.run([] { read_from_a_silent_peer("127.0.0.1:0"); });
}

void nobody_connects(runtime& rt) {
  rt.run([] {
    net::tcp_listener listener(net::endpoint::parse("127.0.0.1:0"));
    spawn({.name = "acceptor"}, [&] { listener.accept(); }).join();
  });
}

void silent_sender(runtime& rt) {
  rt.run([] {
    net::udp_socket socket(net::endpoint::parse("127.0.0.1:0"));
    spawn({.name = "served"}, [&] {
      char room[8];
      net::endpoint from;
      socket.receive_from(room, sizeof room, from);
    }).join();
  });
}

void silent_unix_peer(runtime& rt) {
  rt.run([] { read_from_a_silent_peer("unix:@ulexite_hang_" + std::to_string(::getpid())); });
}

void full_pipe(runtime& rt) {
  rt.run([] {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) return;
    spawn({.name = "writer"}, [&] {
      const std::byte block[4096]{};
      for (;;)
        if (::write(ends[1], block, sizeof block) < 0) net::wait_fd(ends[1], net::interest::write);
    }).join();
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

[[gnu::noinline]] void compute_for_ever() {
  for (volatile bool forever = true; forever;) {
  }
}

[[gnu::noinline]] void read_from_the_silent() {
  int ends[2];
  char room = 0;
  if (::pipe(ends) == 0) static_cast<void>(::read(ends[0], &room, 1));
  std::_Exit(1);  // it must not return, although a signal asks the thread for its position
}

void told_of_a_hog(runtime&) {
  runtime rt({.threads = 1, .stuck_after = 50ms});
  rt.run([] { spawn({.name = "hog"}, compute_for_ever).join(); });
}

void told_of_a_system_call(runtime&) {
  runtime rt({.threads = 1, .stuck_after = 50ms});
  rt.run([] { spawn({.name = "caller"}, read_from_the_silent).join(); });
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
      {"silent_peer",
       silent_peer,
       {"\"served\": waits", "to read descriptor ", " (TCP, here 127.0.0.1:", ", peer 127.0.0.1:"},
       true},
      {"nobody_connects",
       nobody_connects,
       {"\"acceptor\": waits", "to read descriptor ", " (TCP, listens at 127.0.0.1:"},
       true},
      {"silent_sender", silent_sender, {"\"served\": waits", "to read descriptor ", " (UDP, here 127.0.0.1:"}, true},
      {"silent_unix_peer",
       silent_unix_peer,
       {"\"served\": waits", "(Unix socket, here @ulexite_hang_", ", peer without a name)"},
       true},
      {"full_pipe", full_pipe, {"\"writer\": waits", "to write descriptor ", " (pipe:"}, true},
      {"timer_far_away", timer_far_away, {"\"sleeper\": waits", "in a sleep"}, true},
      {"blocking_call_that_hangs",
       blocking_call_that_hangs,
       {"\"caller\": waits", "for a blocking call", ": runs a blocking call of fiber #"},
       true},
      {"exhausted_blocking_pool",
       exhausted_blocking_pool,
       {"2 threads for blocking calls (1 call waits for one)", "\"caller\" and 2 more", "for a blocking call"},
       true},
      {"stuck_worker", stuck_worker, {"runs fiber #", "\"hog\" for ", "without a switch"}, true},
      {"told_of_a_hog",
       told_of_a_hog,
       {"ulexite: worker 0 has not switched for ", " ms: it runs fiber #", "\"hog\", spawned at ",
        "outside.cpp:", "compute_for_ever", "hangs+0x"}},
      {"told_of_a_system_call",
       told_of_a_system_call,
       {"ulexite: worker 0 has not switched for ", "\"caller\", spawned at ", "    0  ", "read_from_the_silent"}},
      {"held_by_a_thread",
       held_by_a_thread,
       {"a plain thread, or a fiber of another runtime (or nobody: was it destroyed?), holds mutex 0x",
        "\"waiter\": waits", "for mutex"},
       true},
  };
  return all;
}

}  // namespace ulexite::hangs
