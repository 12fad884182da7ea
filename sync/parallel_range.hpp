#pragma once

// How the parallel loops split a range: lazily, after Tzannes, Caragea, Barua and Vishkin, "Lazy Binary Splitting"
// (2010). A loop runs through its range in chunks, and offers the upper half of what is left only when everything that
// it offered before was taken. So where nobody steals nothing is split, and where many do the pieces get small.

#include <ulexite/runtime/branch.hpp>
#include <ulexite/runtime/suspend.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <utility>

namespace ulexite {

// What a parallel loop runs over: from one integer to another, or the elements between two iterators.
template <class I>
concept parallel_position = std::integral<I> || std::random_access_iterator<I>;

namespace detail {

inline constexpr std::size_t longest_chunk = 256;

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

// Would another worker take half of the range? Between two chunks, where a loop can be cancelled too.
inline bool split_wanted() {
  const whereabouts& here = inlined_whereabouts();
  if (!here.scheduler || here.agent->kind != agent_kind::fiber) return false;
  throw_if_stopped(*here.agent);
  return here.scheduler->fork_wanted();
}

// Calls work.run(i, j) for parts of [begin, end) that are its own, from the left to the right, and for the others that
// of a work.fresh(), which it then joins.
template <class Work>
void run_range(Work& work, std::size_t begin, std::size_t end, const std::size_t grain) {
  std::size_t chunk = grain;
  while (begin < end) {
    const std::size_t left = end - begin;
    if (split_wanted() && left > grain) {
      const std::size_t middle = begin + left / 2;
      Work upper = work.fresh();
      const auto rest = [&] { run_range(upper, middle, end, grain); };
      forked branch(rest);
      try {
        run_range(work, begin, middle, grain);
      } catch (...) {
        branch.drop();
        throw;
      }
      begin = middle;
      if (branch.take_back()) continue;
      branch.finish_taken();
      return work.join(std::move(upper));
    }
    const std::size_t next = begin + std::min(left, chunk);
    work.run(begin, next);
    begin = next;
    chunk = std::max(grain, std::min({2 * chunk, longest_chunk, left / 8}));
  }
}

}  // namespace detail
}  // namespace ulexite
