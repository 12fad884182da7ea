// waiting N [unrecorded]: N fibers that wait, and one that runs, for a debugger to look at. Says "ready" once they do,
// and the main fiber waits too.

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  using namespace ulexite;
  runtime rt({.threads = 2});
  if (argc == 2) rt.start_trace({.events_per_worker = 4096});
  rt.run([&] {
    channel<int> values;
    mutex guard;
    guard.lock();
    // Once the hog has one of the two workers, the others run on this one, and none leaves it between what it counts
    // and its wait: so when all have counted, and main runs, all wait.
    std::atomic<int> begun{0};
    spawn({.name = "hog"}, [&] {
      ++begun;
      for (volatile bool forever = true; forever;) {
      }
    }).detach();
    while (begun == 0) this_fiber::yield();
    const int readers = std::atoi(argv[1]);
    task_group all;
    for (int i = 0; i < readers; ++i) all.spawn([&] { ++begun, values.receive(); });
    const auto reader = all.spawn({.name = "reader"}, [&] { ++begun, values.receive(); });
    all.spawn({.name = "joiner"}, [&] { ++begun, const_cast<join_handle<void>&>(reader).join(); });
    all.spawn({.name = "blocked"}, [&] {
      ++begun;
      const std::lock_guard lock(guard);
    });
    all.spawn({.name = "coroutine"}, [&]() -> task<> {
      ++begun;
      co_await co_receive(values);
    });
    while (begun < readers + 5) this_fiber::yield();
    std::thread([&rt] {
      for (std::ostringstream text; text.str().find("\"main\": waits") == std::string::npos; rt.dump(text)) {
      }
      std::puts("ready");
      std::fflush(stdout);
    }).detach();
    event never;
    never.wait();
  });
}
