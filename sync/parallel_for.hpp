#pragma once

#include <ulexite/sync/parallel/parallel_range.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
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
    for (; i < end; ++i) std::invoke(body, range_at(first, i));
  }
  for_work fresh() noexcept { return *this; }
  void join(for_work&&) noexcept {}
};

}  // namespace detail

// Calls body(i) for every integer from `first` up to, but without, `last`, or body(*i) for iterators, in any order.
// Idle workers take parts of the range. Returns when all calls have returned. `body` is shared, not copied. It may wait
// for anything except another call of it. A part that another worker takes is a fiber, as in parallel_invoke: it owns
// no lock of the caller.
//
// `grain`: this many calls in a row are never split; 0: the loop chooses, and costs little more than a plain loop even
// for tiny bodies.
//
// Throws the exception of a call: the first by position among the calls that were not stopped by another. The rest of
// the range is then abandoned soon, and the calls that have begun are awaited. A cancellation point, between two parts
// and while it waits. Between two parts it also lets others run, if it has not done so for some 10 ms. On a plain
// thread, in a job and in a stop callback: a plain loop.
template <parallel_position I, class F>
  requires std::is_invocable_v<F&, decltype(detail::range_at(std::declval<const I&>(), 0))>
void parallel_for(std::type_identity_t<I> first, I last, F&& body, std::size_t grain = 0) {
  detail::for_work<I, std::remove_reference_t<F>> work{first, body};
  detail::range_state loop{std::max<std::size_t>(grain, 1)};
  detail::run_range(work, 0, detail::range_size(first, last), loop);
}

// The same for the elements of a range: body(element).
template <parallel_range R, class F>
  requires std::is_invocable_v<F&, std::ranges::range_reference_t<R>>
void parallel_for(R&& range, F&& body, std::size_t grain = 0) {
  const auto first = std::ranges::begin(range);
  parallel_for(first, first + std::ranges::distance(range), body, grain);
}

}  // namespace ulexite
