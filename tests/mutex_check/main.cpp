// main WHAT: uses a std::mutex in one way, right or wrong. mutex_check.py looks at what is reported.
#include <ulexite.hpp>

#include <chrono>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string_view>

namespace ux = ulexite;
using namespace std::chrono_literals;

namespace {

std::mutex plain;
std::shared_mutex shared;

template <class Mutex>
[[gnu::noinline]] void hold_over_a_wait(Mutex& mutex) {
  const std::lock_guard lock(mutex);
  ux::this_fiber::sleep_for(1ms);
}

[[gnu::noinline]] void hold_and_yield() {
  ux::spawn([] {}).detach();
  const std::lock_guard lock(plain);
  ux::this_fiber::yield();
}

void block_its_own_worker() {
  ux::task_group group;
  for (int i = 0; i < 2; ++i) group.spawn([] { hold_over_a_wait(plain); });
  group.wait();
}

void use_well() {
  ux::mutex own;
  int n = 0;
  ux::task_group group;
  for (int i = 0; i < 50; ++i)
    group.spawn([&] {
      for (int k = 0; k < 20; ++k) {
        {
          const std::lock_guard lock(plain);
          ++n;
        }
        const std::lock_guard lock(own);
        ux::this_fiber::yield();
      }
    });
  group.wait();
  std::cout << n << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  ux::runtime rt({.threads = what == "one worker" ? 1u : 4u});
  rt.run([&] {
    if (what == "sleep") hold_over_a_wait(plain);
    if (what == "shared") hold_over_a_wait(shared);
    if (what == "yield") hold_and_yield();
    if (what == "one worker") block_its_own_worker();
    if (what == "well") use_well();
  });
}
