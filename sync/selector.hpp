#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/sync/select/channel_case.hpp>
#include <ulexite/sync/select/timer_case.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ulexite {

// A select over channels of one type, for a number of cases that is known only at run time. The cases stay for many
// waits. Adding one allocates; a wait does not. For one fiber or thread at a time. The channels, and the values to be
// sent, must outlive it.
template <class T>
class selector {
 public:
  // The outcome of a wait.
  struct result {
    std::size_t index = 0;   // of the case that came about
    std::optional<T> value;  // what was received; nullopt after a send, or from a channel that is closed and drained
  };

  // A selector without cases; of several ready cases any is taken.
  selector() = default;
  selector(const selector&) = delete;
  selector& operator=(const selector&) = delete;
  // Of several ready cases, take the first.
  explicit selector(in_order_t) noexcept : in_order_(true) {}

  // Adds a case, and returns its index: 0, 1, 2, ... Throws std::bad_alloc.
  std::size_t add_receive(channel<T>& from) { return add({.from = &receives_.emplace_back(from)}); }
  // `value` is moved from when this case is chosen; put a new one there before the next wait, or disable the case.
  std::size_t add_send(channel<T>& to, T& value) { return add({.to = &sends_.emplace_back(to, value)}); }

  // Switches a case off, or on again: a closed channel, for one, is ready for ever. Throws usage_error for an index
  // that no case has.
  void enable(std::size_t index, bool on = true) {
    if (index >= size()) throw usage_error("selector: case " + std::to_string(index) + " of " + std::to_string(size()));
    cases_[index].which()->enabled = on;
  }
  // Same as enable(index, false).
  void disable(std::size_t index) { enable(index, false); }
  // The number of cases, disabled ones too.
  [[nodiscard]] std::size_t size() const noexcept { return cases_.size(); }

  // Waits until one of the enabled cases can be done, and does it. A cancellation point. Throws operation_cancelled,
  // channel_closed when the chosen case sends to a closed channel, usage_error when no case is enabled.
  result wait() { return *wait_until_ns(detail::no_deadline, true); }
  // The same for no longer than that: nullopt if the time was over first.
  template <class Rep, class Period>
  [[nodiscard]] std::optional<result> wait_for(std::chrono::duration<Rep, Period> time) {
    return wait_until_ns(detail::deadline_after(time), true);
  }
  template <class Clock, class Duration>
  [[nodiscard]] std::optional<result> wait_until(std::chrono::time_point<Clock, Duration> time) {
    return wait_until_ns(detail::deadline_at(time), true);
  }
  // Never waits: nullopt if no case is ready.
  [[nodiscard]] std::optional<result> try_wait() { return wait_until_ns(detail::no_deadline, false); }

 private:
  struct receive final : detail::receive_case_base<T> {
    using detail::receive_case_base<T>::receive_case_base;
  };
  struct send final : detail::send_case_base<T> {
    using detail::send_case_base<T>::send_case_base;
  };
  struct timer final : detail::timer_case {
    using detail::timer_case::timer_case;
  };
  struct entry {  // one of the two is null
    receive* from = nullptr;
    send* to = nullptr;
    [[nodiscard]] detail::select_case* which() const noexcept {
      return from ? static_cast<detail::select_case*>(from) : to;
    }
  };

  std::size_t add(entry added) {
    enabled_.resize(cases_.size() + 2);  // room for a wait
    by_source_.resize(cases_.size() + 2);
    cases_.push_back(added);
    return cases_.size() - 1;
  }

  std::optional<result> wait_until_ns(std::int64_t deadline, bool may_wait) {
    timer_.deadline = deadline;
    enabled_[0] = &timer_;
    std::size_t count = 1;
    for (const entry& each : cases_)
      if (each.which()->enabled) enabled_[count++] = each.which();
    if (count == 1) throw usage_error("selector: none of " + std::to_string(size()) + " cases is enabled");
    by_source_.assign(enabled_.begin(), enabled_.begin() + static_cast<std::ptrdiff_t>(count));
    const auto* const chosen = detail::choose(std::span(enabled_).first(count), by_source_, in_order_, may_wait);
    if (!chosen || chosen == &timer_) return std::nullopt;
    std::size_t index = 0;
    while (cases_[index].which() != chosen) ++index;
    const entry& done = cases_[index];
    if (done.from) return result{index, std::exchange(done.from->value, std::nullopt)};
    if (done.to->closed()) throw channel_closed();
    return result{index, std::nullopt};
  }

  const bool in_order_ = false;
  std::deque<receive> receives_;
  std::deque<send> sends_;
  std::vector<entry> cases_;
  timer timer_{detail::no_deadline};
  std::vector<detail::select_case*> enabled_{nullptr};
  std::vector<detail::select_case*> by_source_;
};

}  // namespace ulexite
