#pragma once

// The parallel loops split a range lazily, after Tzannes, Caragea, Barua and Vishkin, "Lazy Binary Splitting" (2010). A
// loop runs through its range in chunks. It offers the upper half of the rest only when all its earlier offers were
// taken. So without thieves nothing is split, and with many thieves the pieces get small.

#include <ulexite/runtime/fork/branch.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <utility>

namespace ulexite {

// The positions of a parallel loop: integers, or iterators.
template <class I>
concept parallel_position = std::integral<I> || std::random_access_iterator<I>;

// A range for a parallel loop.
template <class R>
concept parallel_range = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

namespace detail {

inline constexpr std::size_t longest_chunk = 256;

struct range_state;
template <class Work>
bool run_split(Work& work, std::size_t begin, std::size_t middle, std::size_t end, range_state& loop);

template <parallel_position I>
std::size_t range_size(const I& first, const I& last) {
  if (!(first < last)) return 0;
  if constexpr (std::integral<I>) {
    return static_cast<std::size_t>(last) - static_cast<std::size_t>(first);
  } else {
    return static_cast<std::size_t>(last - first);
  }
}

template <parallel_position I>
decltype(auto) range_at(const I& first, std::size_t i) {
  if constexpr (std::integral<I>) {
    return static_cast<I>(static_cast<std::size_t>(first) + i);
  } else {
    return first[static_cast<std::iter_difference_t<I>>(i)];
  }
}

// Shared by all parts of a loop.
//
// State
//   active   parts under way. It limits the fibers of a loop with calls that wait. A counter.
//   over     a part has thrown: the others do not have to continue. Set once; a part may see it late.
struct range_state {
  std::size_t grain = 1;
  std::atomic<std::size_t> active{1};
  std::atomic<bool> over{false};
};

// Whether another worker would take half of the range. Called between two chunks. It is a cancellation point, and
// yields if the loop has not yielded for long.
inline bool split_wanted(const range_state& loop) {
  const current_execution& here = inlined_execution();
  if (!here.scheduler || here.agent->kind != agent_kind::fiber) return false;
  agent& self = *here.agent;
  if (here.forks) {
    here.forks->yield_if_requested();
  } else {
    this_fiber::yield_if_requested();
  }
  check_cancelled(self);
  // Read now, because the fiber may have another worker. Null in a strand or under a no_migration_scope: no other
  // worker may take a part.
  const fork_queue* const forks = inlined_execution().forks;
  return forks && forks->wanted() && loop.active.load(std::memory_order_relaxed) <= forks->worker_limit();  // hint
}

// Calls work.run(i, j) for its own parts of [begin, end), from left to right. For the other parts it calls run of a
// work.fresh(), and then joins that.
template <class Work>
void run_range(Work& work, std::size_t begin, std::size_t end, range_state& loop) try {
  std::size_t chunk = loop.grain;
  while (begin < end && !loop.over.load(std::memory_order_relaxed)) {  // hint
    const std::size_t left = end - begin;
    if (split_wanted(loop) && left / 2 >= loop.grain) {
      const std::size_t middle = begin + left / 2;
      if (run_split(work, begin, middle, end, loop)) return;
      begin = middle;
      continue;
    }
    const std::size_t next = begin + std::min(left, chunk);
    work.run(begin, next);
    begin = next;
    chunk = std::max(loop.grain, std::min({2 * chunk, longest_chunk, left / 8}));
  }
} catch (...) {
  loop.over.store(true, std::memory_order_relaxed);  // hint
  throw;
}

// Runs the lower half while others may take the upper one. False: no worker has taken it, and the caller must run it.
template <class Work>
bool run_split(Work& work, std::size_t begin, std::size_t middle, std::size_t end, range_state& loop) {
  Work upper = work.fresh();
  const auto rest = [&] {
    loop.active.fetch_add(1, std::memory_order_relaxed);  // counter
    run_range(upper, middle, end, loop);
    loop.active.fetch_sub(1, std::memory_order_relaxed);  // counter
  };
  forked branch(rest);
  branch.run_while_offered([&] { run_range(work, begin, middle, loop); });
  if (branch.try_take_back()) return false;
  loop.active.fetch_sub(1, std::memory_order_relaxed);  // counter
  branch.join_stolen();
  loop.active.fetch_add(1, std::memory_order_relaxed);                          // counter
  if (!loop.over.load(std::memory_order_relaxed)) work.join(std::move(upper));  // hint
  return true;
}

}  // namespace detail
}  // namespace ulexite
