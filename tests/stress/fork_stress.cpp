// Random trees of forks: parallel_invoke, parallel_for and parallel_reduce. The leaves compute, yield, sleep, wait for
// each other, spawn, leave their worker, and throw. There are deadlines, shields and requests to stop. No part runs
// twice, and each part runs unless the tree was ended early. When the root has ended, no part of the tree is under way.
// A runtime that ends in the middle leaves nothing.

#include "stress/stress.hpp"

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/parallel_for.hpp>
#include <ulexite/sync/parallel_invoke.hpp>
#include <ulexite/sync/parallel_reduce.hpp>
#include <ulexite/sync/parallel_sort.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct failed : std::runtime_error {
  failed() : std::runtime_error("a leaf failed") {}
};

std::chrono::microseconds some_time(detail::random& random) { return std::chrono::microseconds(random.below(200)); }

// The allowed events in a tree. violent: all that end parts early. peaceful: none of these, so all parts must run.
// cramped: these, and too little room for all fibers, so functions must not wait for each other.
enum class kind { violent, peaceful, cramped };

class tree {
 public:
  tree(program& test, kind kind) : test_(test), kind_(kind) {}

  // A node with up to `levels` below it. Returns how many leaves it has called.
  long grow(std::uint64_t seed, int levels) {
    const counted here(under_way_);
    detail::random random(seed);
    test_.moved();
    std::optional<deadline_scope> limit;
    if (violent() && random.below(12) == 0) limit.emplace(some_time(random));
    std::optional<shield> uninterrupted;
    if (random.below(12) == 0) uninterrupted.emplace();
    if (levels == 0) {
      leaf(random);
      return 1;
    }
    switch (random.below(6)) {
      case 0:
      case 1: return two(random, levels);
      case 2: return many(random, levels);
      case 3: return loop(random, levels);
      case 4: return sum(random, levels);
      default: return other_fiber(random, levels);
    }
  }

  [[nodiscard]] int under_way() const { return under_way_; }

 private:
  struct counted {
    explicit counted(std::atomic<int>& n) : count(n) { ++count; }
    ~counted() { --count; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    std::atomic<int>& count;
  };

  [[nodiscard]] bool violent() const { return kind_ != kind::peaceful; }

  void leaf(detail::random& random) {
    switch (random.below(violent() ? 11 : 9)) {
      case 0: this_fiber::yield(); break;
      case 1: this_fiber::sleep_for(some_time(random)); break;
      case 2: spawn([] { this_fiber::yield(); }).join(); break;
      case 3:
        if (kind_ != kind::cramped) rendezvous();
        break;
      case 4:
        if (random.below(10) == 0) block_in_place([] { std::this_thread::yield(); });
        break;
      case 5: sort(random); break;
      case 9: throw failed();
      case 10: this_fiber::check(); break;
      default:
        for (std::uint32_t i = random.below(2000); i > 0; --i) detail::cpu_relax();
    }
  }

  // Functions that get on only with each other.
  void rendezvous() {
    channel<int> there, back;
    parallel_invoke([&] { there.send(1), test_.check(back.receive() == 2, "another value came back"); },
                    [&] { test_.check(there.receive() == 1, "another value came"), back.send(2); });
  }

  void sort(detail::random& random) {
    std::vector<std::uint32_t> values(random.below(8) == 0 ? 5000 : 20);
    for (auto& value : values) value = random.below(1000);
    parallel_sort(values.begin(), values.end());
    test_.check(std::is_sorted(values.begin(), values.end()), "not sorted");
  }

  long two(detail::random& random, int levels) {
    std::atomic<int> calls[2] = {};
    long left = 0, right = 0;
    parallel_invoke([&, seed = random.next()] { ++calls[0], left = grow(seed, levels - 1); },
                    [&, seed = random.next()] { ++calls[1], right = grow(seed, levels - 1); });
    for (auto& each : calls) test_.check(each == 1, "a function was not called once", each);
    return left + right;
  }

  long many(detail::random& random, int levels) {
    std::atomic<int> calls[4] = {};
    long sums[4] = {};
    const auto part = [&](int i) {
      return [&, i, seed = random.next()] { ++calls[i], sums[i] = grow(seed, levels - 1); };
    };
    try {
      parallel_invoke(part(0), part(1), part(2), part(3));
    } catch (...) {
      for (auto& each : calls) test_.check(each <= 1, "a function was called twice", each);
      throw;
    }
    for (auto& each : calls) test_.check(each == 1, "a function was not called once", each);
    return sums[0] + sums[1] + sums[2] + sums[3];
  }

  long loop(detail::random& random, int levels) {
    const std::uint32_t count = 1 + random.below(random.below(4) == 0 ? 3000 : 10), heavy = random.below(count);
    const std::vector<std::atomic<int>> calls(count);
    std::atomic<long> leaves{0};
    const std::uint64_t seed = random.next();
    const auto body = [&](std::uint32_t i) {
      test_.check(const_cast<std::atomic<int>&>(calls[i]).fetch_add(1) == 0, "a call of a loop came twice");
      if (i == heavy || count <= 4) leaves += grow(seed + i, levels - 1);
    };
    parallel_for(0u, count, body, random.below(3));
    for (auto& each : calls) test_.check(each == 1, "a loop has left something out", each);
    return leaves;
  }

  long sum(detail::random& random, int levels) {
    const std::uint32_t count = 1 + random.below(500), heavy = random.below(count);
    const std::uint64_t seed = random.next();
    std::atomic<long> leaves{0};
    const auto map = [&](std::uint32_t i) -> long {
      if (i == heavy) leaves += grow(seed, levels - 1);
      return i;
    };
    const long total = parallel_reduce(0u, count, 0L, map, std::plus<>{}, random.below(3));
    test_.check(total == long{count} * (count - 1) / 2, "a sum is wrong", total);
    return leaves;
  }

  long other_fiber(detail::random& random, int levels) {
    auto other = spawn([this, seed = random.next(), levels] { return grow(seed, levels - 1); });
    if (violent() && random.below(4) == 0) other.request_stop();
    return other.get();
  }

  program& test_;
  const kind kind_;
  std::atomic<int> under_way_{0};
};

void grow_one(program& test, runtime& rt, detail::random& random) {
  const kind kind = random.below(2) == 0 ? kind::peaceful : kind::violent;
  tree one(test, kind);
  auto root = rt.spawn([&one, seed = random.next()] { return one.grow(seed, 5); });
  if (kind == kind::violent && random.below(2) == 0) {
    for (std::uint32_t i = 0, n = random.below(60); i < n; ++i) std::this_thread::yield();
    root.request_stop();
  }
  try {
    test.check(root.get() > 0, "a tree without a leaf");
  } catch (const operation_cancelled&) {
    test.check(kind == kind::violent, "a peaceful tree was cancelled");
  } catch (const failed&) {
    test.check(kind == kind::violent, "a peaceful tree has failed");
  }
  while (one.under_way() != 0) std::this_thread::yield();  // detached fibers
}

void end_busy(program& test, detail::random& random) {
  const auto mode = random.below(2) == 0                   ? shutdown_mode::drain
                    : random.below(2) == 0 || ULEXITE_ASAN ? shutdown_mode::cancel
                                                           : shutdown_mode::abandon;  // leaks what the leaves own
  const auto kind = static_cast<enum kind>(random.below(3));
  tree one(test, kind);
  const std::size_t limit = kind == kind::cramped ? 3 + random.below(20) : 0;
  runtime rt({.threads = test.threads, .max_fibers = limit, .on_unhandled_exception = [](auto&) {}});
  for (std::uint32_t i = 0, n = 1 + random.below(3); i < n; ++i) try {
      rt.spawn([&one, seed = random.next()] { one.grow(seed, 4); }).detach();
    } catch (const std::system_error&) {
      test.check(kind == kind::cramped, "there was no room");
    }
  for (std::uint32_t i = 0, n = random.below(50); i < n; ++i) std::this_thread::yield();
  const std::size_t left = rt.shutdown(mode);
  if (mode != shutdown_mode::abandon) {
    test.check(left == 0, "fibers were abandoned", static_cast<long long>(left));
    test.check(one.under_way() == 0, "nodes are left", one.under_way());
  }
  test.check_metrics(rt, true);
  test.moved();
}

std::size_t stacks_in_use() {
  const detail::stack_pool& pool = detail::stack_pool::of_size(runtime_options{}.stack_size);
  return pool.carved() - pool.unused();
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  const std::size_t stacks = stacks_in_use();
  {
    runtime rt({.threads = test.threads, .on_unhandled_exception = [](auto&) {}});
    test.show(&rt);
    while (test.another_round()) {
      detail::random random = test.random();
      for (int i = 0; i < 10; ++i) grow_one(test, rt, random);
      end_busy(test, random);
    }
    test.drain(rt);
  }
  test.check(stacks_in_use() == stacks, "stacks are left", static_cast<long long>(stacks_in_use() - stacks));
  return test.report();
}
