// Mutex, condition variable and wait group together: a bounded buffer of the classic kind, checked under its lock, used
// by fibers and plain threads; each round's group is destroyed as soon as its wait has returned.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct bounded_buffer {
  program& test;
  const int room;
  mutex guard;
  condition_variable not_full, not_empty;
  int level = 0, inside = 0;  // guarded
  long put_count = 0, taken_count = 0;

  bounded_buffer(program& owner, int size) : test(owner), room(size) {}

  template <class Change>
  void change(std::unique_lock<mutex>&, detail::random& random, Change what) {
    ++inside;
    test.check(inside == 1, "two are inside the mutex", inside);
    what();
    test.check(level >= 0 && level <= room, "the level is out of bounds", level);
    if (random.below(16) == 0) this_fiber::yield();
    --inside;
    test.moved();
  }

  void put(detail::random& random) {
    std::unique_lock lock(guard);
    if (random.below(2) == 0) {
      not_full.wait(lock, [&] { return level < room; });
    } else {
      while (!not_full.wait_for(lock, std::chrono::microseconds(random.below(300)), [&] { return level < room; })) {
      }
    }
    change(lock, random, [&] { ++level, ++put_count; });
    if (random.below(2) == 0) lock.unlock();
    random.below(8) == 0 ? not_empty.notify_all() : not_empty.notify_one();
  }

  void take(detail::random& random) {
    std::unique_lock lock(guard);
    not_empty.wait(lock, [&] { return level > 0; });
    change(lock, random, [&] { --level, ++taken_count; });
    lock.unlock();
    random.below(8) == 0 ? not_full.notify_all() : not_full.notify_one();
  }
};

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  runtime rt({.threads = test.threads});
  test.show(&rt);
  while (test.another_round()) {
    detail::random random = test.random();
    bounded_buffer buffer(test, 1 + static_cast<int>(random.below(8)));
    const int pairs = 1 + static_cast<int>(random.below(8)), each = 1 + static_cast<int>(random.below(200));
    const int thread_pairs = static_cast<int>(random.below(3));
    std::vector<std::thread> threads;
    std::vector<join_handle<>> fibers_left;
    {
      auto group = std::make_unique<wait_group>(static_cast<std::size_t>(2 * (pairs + thread_pairs)));
      const auto start = [&](auto&& where, auto operation, std::uint64_t seed) {
        where([&buffer, g = group.get(), operation, seed, each] {
          detail::random mine(seed);
          for (int i = 0; i < each; ++i) (buffer.*operation)(mine);
          g->done();
        });
      };
      const auto in_fiber = [&](auto work) { fibers_left.push_back(rt.spawn(work)); };
      const auto in_thread = [&](auto work) { threads.emplace_back(work); };
      for (int i = 0; i < pairs; ++i) {
        start(in_fiber, &bounded_buffer::put, random.next());
        start(in_fiber, &bounded_buffer::take, random.next());
      }
      for (int i = 0; i < thread_pairs; ++i) {
        start(in_thread, &bounded_buffer::put, random.next());
        start(in_thread, &bounded_buffer::take, random.next());
      }
      auto second =
          rt.spawn([g = group.get(), time = random.below(200)] { g->wait_for(std::chrono::microseconds(time)); });
      while (!group->wait_for(std::chrono::microseconds(random.below(500)))) {
      }
      second.join();
    }
    for (auto& handle : fibers_left) handle.join();
    for (auto& thread : threads) thread.join();
    const long total = static_cast<long>(pairs + thread_pairs) * each;
    test.check(buffer.level == 0 && buffer.put_count == total && buffer.taken_count == total, "items lost",
               buffer.level);
  }
  test.show(nullptr);
  rt.shutdown(shutdown_mode::drain);
  test.check_metrics(rt, true);
  return test.report();
}
