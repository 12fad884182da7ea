// waiting N: N fibers that wait, and one that runs, for a debugger to look at. Says "ready" once they do.

#include <ulexite.hpp>

#include <cstdio>
#include <cstdlib>
#include <mutex>

int main(int, char** argv) {
  using namespace ulexite;
  runtime rt({.threads = 2});
  rt.run([&] {
    channel<int> values;
    mutex guard;
    guard.lock();
    task_group all;
    for (int i = std::atoi(argv[1]); i > 0; --i) all.spawn([&] { values.receive(); });
    const auto reader = all.spawn({.name = "reader"}, [&] { values.receive(); });
    all.spawn({.name = "joiner"}, [&] { const_cast<join_handle<void>&>(reader).join(); });
    all.spawn({.name = "blocked"}, [&] { const std::lock_guard lock(guard); });
    spawn({.name = "hog"}, [] {
      for (volatile bool forever = true; forever;) {
      }
    }).detach();
    this_fiber::sleep_for(std::chrono::milliseconds(100));
    std::puts("ready");
    std::fflush(stdout);
    event never;
    never.wait();
  });
}
