#pragma once

#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ulexite::detail {

// Armed timers, the earliest on top, in a heap with four children per node. It is half as deep as a binary heap, and
// the children are adjacent in memory. Each timer knows its position, so a removal costs O(log4 n) and no search.
// Timers with equal deadlines leave in no particular order. Not synchronised. Only reserve allocates, and a push beyond
// the reserved room.
class timer_heap {
 public:
  timer_heap() { items_.reserve(64); }  // so that a few timers never allocate

  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }

  // The deadline on top, or INT64_MAX.
  [[nodiscard]] std::int64_t earliest() const noexcept { return empty() ? INT64_MAX : items_.front().deadline; }

  // Makes room for `count` timers in total. Throws std::bad_alloc.
  void reserve(std::size_t count) {
    if (count > items_.capacity()) items_.reserve(std::max(count, 2 * items_.capacity()));
  }

  // `timer` must be idle and carry its deadline.
  void push(timer_event& timer) {
    if (timer.position != timer_event::idle) panic("a timer was armed twice (position %u)", timer.position);
    items_.emplace_back();
    sift_up(size() - 1, {timer.deadline, &timer});
  }

  // Takes the timer on top. The heap is not empty.
  timer_event& pop() noexcept {
    timer_event& timer = *items_.front().timer;
    remove(timer);
    return timer;
  }

  // Takes `timer`, which is in this heap, and leaves it idle.
  void remove(timer_event& timer) noexcept {
    const std::size_t hole = timer.position;
    const item last = items_.back();
    items_.pop_back();
    timer.position = timer_event::idle;
    if (last.timer == &timer) return;
    if (hole > 0 && last.deadline < items_[parent(hole)].deadline) {
      sift_up(hole, last);
    } else {
      sift_down(hole, last);
    }
  }

 private:
  struct item {
    std::int64_t deadline = 0;  // copied from the timer: comparing must not touch the timers' own cache lines
    timer_event* timer = nullptr;
  };

  static constexpr std::size_t arity = 4;
  static std::size_t parent(std::size_t index) noexcept { return (index - 1) / arity; }
  static std::size_t first_child(std::size_t index) noexcept { return arity * index + 1; }

  void place(std::size_t index, const item& moved) noexcept {
    items_[index] = moved;
    moved.timer->position = static_cast<std::uint32_t>(index);
  }

  // Moves the hole at `index` up to the place of `moved`, and puts `moved` there.
  void sift_up(std::size_t index, item moved) noexcept {
    while (index > 0 && moved.deadline < items_[parent(index)].deadline) {
      place(index, items_[parent(index)]);
      index = parent(index);
    }
    place(index, moved);
  }

  void sift_down(std::size_t index, item moved) noexcept {
    for (std::size_t first = first_child(index); first < size(); first = first_child(index)) {
      const std::size_t child = earliest_of(first);
      if (moved.deadline <= items_[child].deadline) break;
      place(index, items_[child]);
      index = child;
    }
    place(index, moved);
  }

  // The sibling with the earliest deadline, of those from `first` on.
  [[nodiscard]] std::size_t earliest_of(std::size_t first) const noexcept {
    const std::size_t end = std::min(first + arity, size());
    std::size_t best = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (items_[child].deadline < items_[best].deadline) best = child;
    }
    return best;
  }

  std::vector<item> items_;
};

}  // namespace ulexite::detail
