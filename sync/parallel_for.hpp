#pragma once

#include <ulexite/sync/parallel/parallel_range.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <type_traits>

namespace ulexite {
namespace detail {

template <class I, class F>
struct for_work {
  const I& first;
  F& body;

  void run(std::size_t i, std::size_t end) {
    for (; i < end; ++i) call_function(body, range_at(first, i));
  }
  for_work fresh() noexcept { return *this; }
  void join(for_work&&) noexcept {}
};

}  // namespace detail

// Calls body(i) for each integer in [first, last), or body(*i) for iterators, in any order. Idle workers take parts of
// the range. Returns when all calls have returned. `body` is shared, not copied. It may wait for anything except
// another call of `body`. A part that another worker takes is a fiber, as in parallel_invoke: it holds no lock of the
// caller.
//
// `grain` is the number of consecutive calls that are never split. With 0 the loop chooses, and costs little more than
// a plain loop even for tiny bodies.
//
// Throws the exception of a call: the first by position among the calls that failed by themselves. It then soon
// abandons the rest of the range, and waits for the calls that have begun. A cancellation point between two parts, and
// while it waits. Between two parts it also yields, if it has not yielded for some 10 ms. On a plain thread, in a job
// and in a stop callback it is a plain loop.
template <parallel_position I, class F>
  requires std::is_invocable_v<F&, decltype(detail::range_at(std::declval<const I&>(), 0))>
void parallel_for(std::type_identity_t<I> first, I last, F&& body, std::size_t grain = 0) {
  detail::for_work<I, std::remove_reference_t<F>> work{first, body};
  detail::range_state loop{std::max<std::size_t>(grain, 1)};
  detail::run_range(work, 0, detail::range_size(first, last), loop);
}

// Calls body(element) for each element of a range. Otherwise as above.
template <parallel_range R, class F>
  requires std::is_invocable_v<F&, std::ranges::range_reference_t<R>>
void parallel_for(R&& range, F&& body, std::size_t grain = 0) {
  const auto first = std::ranges::begin(range);
  parallel_for(first, first + std::ranges::distance(range), body, grain);
}

}  // namespace ulexite
