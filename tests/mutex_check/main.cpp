// main WHAT: uses a std::mutex in one way, right or wrong. mutex_check.py looks at what is reported.
#include <ulexite.hpp>

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <thread>

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

[[gnu::noinline]] void read_over_a_wait(bool at_once) {
  std::shared_lock lock(shared, std::defer_lock);
  if (!at_once) lock.lock();
  if (at_once && !lock.try_lock()) return;
  ux::this_fiber::sleep_for(1ms);
}

// A writer that waits for a reader of its own worker.
void block_its_own_worker_by_a_reader() {
  ux::task_group group;
  group.spawn([] { read_over_a_wait(false); });
  group.spawn([] { hold_over_a_wait(shared); });
  group.wait();
}

// Many readers hold the lock at the same time, one of them on a plain thread. Each unlock is that of its own reader.
void read_well() {
  const auto read = [] {
    for (int k = 0; k < 200; ++k) {
      const std::shared_lock lock(shared);
      const std::shared_lock again(shared, std::try_to_lock);
    }
  };
  std::thread outside(read);
  ux::task_group group;
  for (int i = 0; i < 20; ++i) group.spawn(read);
  group.wait();
  ux::blocking([&] { outside.join(); });
  std::cout << "read\n";
}

// Locks a mutex whose holder has died, and holds it over a wait.
[[gnu::noinline]] void hold_a_dead_owners() {
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  static pthread_mutex_t mutex;
  pthread_mutex_init(&mutex, &robust);
  ux::blocking([] { std::thread([] { pthread_mutex_lock(&mutex); }).join(); });
  if (pthread_mutex_lock(&mutex) == EOWNERDEAD) std::cout << "its owner has died\n";
  pthread_mutex_consistent(&mutex);
  ux::this_fiber::yield();
  pthread_mutex_unlock(&mutex);
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
  ux::runtime rt({.threads = what.starts_with("one worker") || what == "dead owner" ? 1u : 4u});
  rt.run([&] {
    if (what == "sleep") hold_over_a_wait(plain);
    if (what == "shared") hold_over_a_wait(shared);
    if (what == "reader") read_over_a_wait(false);
    if (what == "trying reader") read_over_a_wait(true);
    if (what == "one worker, a reader") block_its_own_worker_by_a_reader();
    if (what == "readers") read_well();
    if (what == "dead owner") hold_a_dead_owners();
    if (what == "yield") hold_and_yield();
    if (what == "one worker") block_its_own_worker();
    if (what == "well") use_well();
  });
}
