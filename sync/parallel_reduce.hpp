#pragma once

#include <ulexite/sync/parallel/parallel_range.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ulexite {
namespace detail {

template <class I, class T, class Map, class Reduce>
class reduce_work {
 public:
  reduce_work(const I& first, Map& map, Reduce& reduce) : first_(first), map_(map), reduce_(reduce) {}

  void run(std::size_t i, std::size_t end) {
    T sum = total_ ? reduced(std::move(*total_), mapped(i)) : mapped(i);
    while (++i < end) sum = reduced(std::move(sum), mapped(i));
    total_.emplace(std::move(sum));
  }
  reduce_work fresh() { return {first_, map_, reduce_}; }
  void join(reduce_work&& right) {
    T sum = reduced(std::move(*total_), std::move(*right.total_));
    total_.emplace(std::move(sum));
  }
  T take() { return std::move(*total_); }

 private:
  // Returns a T, because the result of `reduce_` may refer to its operands.
  T reduced(T&& left, T&& right) { return std::invoke(reduce_, std::move(left), std::move(right)); }
  T mapped(std::size_t i) { return std::invoke(map_, range_at(first_, i)); }

  const I& first_;
  Map& map_;
  Reduce& reduce_;
  std::optional<T> total_;  // of the elements reduced so far, if any
};

}  // namespace detail

// Reduces map(i) for each integer in [first, last), or map(*i) for iterators, to one value. The value is reduce(init,
// ...) over all of them, in order. Idle workers take parts of the work. `reduce` must be associative; it does not have
// to be commutative. `init` is used once; it does not have to be neutral. With floating point the result depends on the
// borders of the parts, so it may differ from call to call.
//
// T, the type of `init`, must be movable. Otherwise as parallel_for.
template <parallel_position I, class T, class Map, class Reduce>
  requires std::is_invocable_r_v<T, Map&, decltype(detail::range_at(std::declval<const I&>(), 0))> &&
           std::is_invocable_r_v<T, Reduce&, T, T>
[[nodiscard]] T parallel_reduce(std::type_identity_t<I> first, I last, T init, Map map, Reduce reduce,
                                std::size_t grain = 0) {
  const std::size_t size = detail::range_size(first, last);
  if (size == 0) return init;
  detail::reduce_work<I, T, Map, Reduce> work(first, map, reduce);
  detail::range_state loop{std::max<std::size_t>(grain, 1)};
  detail::run_range(work, 0, size, loop);
  return std::invoke(reduce, std::move(init), work.take());
}

// Reduces the elements of a range. Without `map` it reduces the elements themselves. Otherwise as above.
template <parallel_range R, class T, class Map, class Reduce>
  requires std::is_invocable_r_v<T, Map&, std::ranges::range_reference_t<R>> && std::is_invocable_r_v<T, Reduce&, T, T>
[[nodiscard]] T parallel_reduce(R&& range, T init, Map map, Reduce reduce, std::size_t grain = 0) {
  const auto first = std::ranges::begin(range);
  return parallel_reduce(first, first + std::ranges::distance(range), std::move(init), std::move(map),
                         std::move(reduce), grain);
}
template <parallel_range R, class T, class Reduce = std::plus<>>
  requires std::is_convertible_v<std::ranges::range_reference_t<R>, T> && std::is_invocable_r_v<T, Reduce&, T, T>
[[nodiscard]] T parallel_reduce(R&& range, T init, Reduce reduce = {}) {
  return parallel_reduce(
      range, std::move(init), [](auto&& element) -> T { return std::forward<decltype(element)>(element); },
      std::move(reduce));
}

}  // namespace ulexite
