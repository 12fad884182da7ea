#pragma once

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/parallel_invoke.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>

namespace ulexite {
namespace detail {

inline constexpr std::ptrdiff_t sorted_at_once = 2048;

// The median of three by `less`.
template <class It, class Less>
It median(It a, It b, It c, Less& less) {
  if (less(*a, *b)) return less(*b, *c) ? b : less(*a, *c) ? c : a;
  return less(*a, *c) ? a : less(*b, *c) ? c : b;
}

// Partitions the elements around a pivot. Returns the range of the pivot and of some or all elements equal to it. The
// pivot is the pseudo-median of nine (Tukey's ninther), after Bentley and McIlroy, "Engineering a Sort Function"
// (1993).
template <class It, class Less>
std::pair<It, It> partition_around_median(It first, It last, Less& less) {
  const auto step = (last - first) / 8;
  const It middle = first + (last - first) / 2, end = last - 1;
  const It chosen =
      median(median(first, first + step, first + 2 * step, less), median(middle - step, middle, middle + step, less),
             median(end - 2 * step, end - step, end, less), less);
  std::iter_swap(first, chosen);
  auto&& pivot = *first;
  const It lower_end = std::partition(first + 1, last, [&](auto&& x) { return less(x, pivot); });
  const It equal_begin = lower_end - 1;
  std::iter_swap(first, equal_begin);
  // A separate pass for equal elements pays only if there are many: then few elements are less, here or a level deeper.
  if (equal_begin - first > (last - first) / 16) return {equal_begin, lower_end};
  auto&& placed = *equal_begin;
  return {equal_begin, std::partition(lower_end, last, [&](auto&& x) { return !less(placed, x); })};
}

// Quicksort. If the pivots are bad too often, calls std::sort, which is never quadratic.
template <class It, class Less>
void sort_range(It first, It last, Less& less, std::size_t levels) {
  if (last - first <= sorted_at_once || levels == 0) return std::sort(first, last, std::ref(less));
  this_fiber::check();
  const auto [equal_begin, equal_end] = partition_around_median(first, last, less);
  parallel_invoke([&, middle = equal_begin] { sort_range(first, middle, less, levels - 1); },
                  [&, middle = equal_end] { sort_range(middle, last, less, levels - 1); });
}

}  // namespace detail

// Sorts [first, last) in place by `less` of the projected elements, as std::ranges::sort. Not stable; O(n log n)
// comparisons. Idle workers take parts of the work. `less` is shared, not copied, and several workers call it at the
// same time.
//
// A cancellation point between two parts, where it also yields from time to time (a pass over all elements is the
// longest part). A cancellation leaves all elements in an unspecified order. Throws the exception of a comparison; the
// elements are then valid, as with std::sort. On a plain thread, in a job and in a stop callback it sorts one part
// after the other.
template <std::random_access_iterator It, class Less = std::less<>, class Projection = std::identity>
  requires std::sortable<It, Less, Projection>
void parallel_sort(It first, It last, Less less = {}, Projection projection = {}) {
  const auto by = [&less, &projection](auto&& a, auto&& b) -> bool {
    return std::invoke(less, std::invoke(projection, a), std::invoke(projection, b));
  };
  const auto size = static_cast<std::size_t>(last - first);
  detail::sort_range(first, last, by, 2 * std::bit_width(size));
}

// Sorts a range. Otherwise as above.
template <std::ranges::random_access_range R, class Less = std::less<>, class Projection = std::identity>
  requires std::ranges::sized_range<R> && std::sortable<std::ranges::iterator_t<R>, Less, Projection>
void parallel_sort(R&& range, Less less = {}, Projection projection = {}) {
  const auto first = std::ranges::begin(range);
  parallel_sort(first, first + std::ranges::distance(range), std::move(less), std::move(projection));
}

}  // namespace ulexite
