#pragma once

#include <ulexite/sync/parallel_for.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ulexite {

// For each iterator i in [first, last), writes function(*i) to the matching position from `out` on, as std::transform.
// The order of the calls is unspecified. Returns the end of the written range. `out` may be `first`. Otherwise as
// parallel_for.
template <std::random_access_iterator I, std::random_access_iterator Out, class F>
  requires std::indirectly_writable<Out, std::invoke_result_t<F&, std::iter_reference_t<I>>>
Out parallel_transform(I first, I last, Out out, F function, std::size_t grain = 0) {
  const auto size = first < last ? last - first : 0;
  parallel_for(
      std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(size),
      [&](std::ptrdiff_t i) { out[i] = std::invoke(function, first[i]); }, grain);
  return out + size;
}

// Transforms the elements of a range. Otherwise as above.
template <parallel_range R, std::random_access_iterator Out, class F>
  requires std::indirectly_writable<Out, std::invoke_result_t<F&, std::ranges::range_reference_t<R>>>
Out parallel_transform(R&& range, Out out, F function, std::size_t grain = 0) {
  const auto first = std::ranges::begin(range);
  return parallel_transform(first, first + std::ranges::distance(range), out, std::move(function), grain);
}

}  // namespace ulexite
