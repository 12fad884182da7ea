// Mutexes, condition variables and wait groups together, used by fibers and plain threads. One part is a classic
// bounded buffer, checked under its lock; its group is destroyed as soon as its wait has returned. The other part is a
// pool of tokens. There notifications race with time-outs, requests to stop and stop tokens, and none may be lost.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <type_traits>
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

void use_buffer(program& test, runtime& rt, detail::random& random) {
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
  test.check(buffer.level == 0 && buffer.put_count == total && buffer.taken_count == total, "items lost", buffer.level);
}

// Each of the patient takes its share of tokens. The impatient wait for no longer than they like, and bring back what
// they got. There are as many tokens, and notifications, as the patient need. If a notification went to a fiber that
// leaves without looking for a token, a patient fiber would wait for ever.
template <class Mutex, class Condition>
struct token_pool {
  static constexpr bool any = std::is_same_v<Condition, condition_variable_any>;

  program& test;
  Mutex guard;
  Condition given;
  std::stop_source stop;
  int tokens = 0, inside = 0;  // guarded
  long taken = 0;

  explicit token_pool(program& owner) : test(owner) {}

  void change(int difference, detail::random& random) {
    ++inside;
    test.check(inside == 1, "two are inside the mutex", inside);
    tokens += difference;
    test.check(tokens >= 0, "a token was taken twice", tokens);
    if (random.below(16) == 0) this_fiber::yield();
    --inside;
    test.moved();
  }

  void give(detail::random& random) {
    std::unique_lock lock(guard);
    change(1, random);
    if (random.below(2) == 0) lock.unlock();
    given.notify_one();
  }

  void take(detail::random& random) {
    std::unique_lock lock(guard);
    given.wait(lock, [&] { return tokens > 0; });
    change(-1, random);
    ++taken;
  }

  // Whether there was a notification.
  bool wait_a_little(std::unique_lock<Mutex>& lock, detail::random& random) {
    const auto time = std::chrono::microseconds(random.below(100));
    if constexpr (any)
      if (random.below(2) == 0) return given.wait_for(lock, stop.get_token(), time, [&] { return tokens > 0; });
    return given.wait_for(lock, time) == std::cv_status::no_timeout;
  }

  void borrow(detail::random& random) {
    std::unique_lock lock(guard, std::defer_lock);
    if constexpr (any) {
      if (!lock.try_lock_for(std::chrono::microseconds(random.below(50)))) return;
    } else {
      lock.lock();
    }
    if (!wait_a_little(lock, random) || tokens == 0) return;
    change(-1, random);
    lock.unlock();
    give(random);
  }
};

template <class Mutex, class Condition>
void share_tokens(program& test, runtime& rt, detail::random& random) {
  token_pool<Mutex, Condition> pool(test);
  using operation = void (token_pool<Mutex, Condition>::*)(detail::random&);
  std::vector<std::thread> threads;
  std::vector<join_handle<>> fibers_left;
  const int each = 1 + static_cast<int>(random.below(100));
  const auto work = [&pool, each](operation what, std::uint64_t seed) {
    detail::random mine(seed);
    try {
      for (int i = 0; i < each; ++i) (pool.*what)(mine);
    } catch (const operation_cancelled&) {  // an impatient one
    }
  };
  const auto start = [&](operation what, int fiber_count, int thread_count) {
    for (int i = 0; i < fiber_count; ++i) fibers_left.push_back(rt.spawn(work, what, random.next()));
    for (int i = 0; i < thread_count; ++i) threads.emplace_back(work, what, random.next());
  };
  using kind = token_pool<Mutex, Condition>;
  const int patient = 1 + static_cast<int>(random.below(10)), patient_threads = static_cast<int>(random.below(3));
  const int impatient = 1 + static_cast<int>(random.below(20));
  start(&kind::borrow, impatient, static_cast<int>(random.below(3)));
  start(&kind::take, patient, patient_threads);
  start(&kind::give, patient, patient_threads);
  for (int i = 0; i < impatient; ++i) {
    if (random.below(2) == 0) fibers_left[random.below(static_cast<std::uint32_t>(impatient))].request_stop();
    if (i == impatient / 2) pool.stop.request_stop();
    std::this_thread::yield();
  }
  for (auto& handle : fibers_left) handle.join();
  for (auto& thread : threads) thread.join();
  test.check(pool.tokens == 0 && pool.taken == static_cast<long>(patient + patient_threads) * each, "tokens lost",
             pool.tokens);
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  return test.run_with_one_runtime([&](runtime& rt, detail::random& random) {
    use_buffer(test, rt, random);
    share_tokens<mutex, condition_variable>(test, rt, random);
    share_tokens<timed_mutex, condition_variable_any>(test, rt, random);
  });
}
