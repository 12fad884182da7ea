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

// A select over channels of one type, if their number is known only at run time. Its cases stay for many waits. Adding
// a case allocates; a wait does not. One fiber or thread may use it at a time. The channels, and the values to be sent,
// must outlive it.
template <class T>
class selector {
 public:
  // The outcome of a wait.
  struct result {
    std::size_t index = 0;   // of the chosen case
    std::optional<T> value;  // the received value; nullopt after a send, or from a channel that is closed and drained
  };

  // Makes a selector without cases. Of several ready cases it takes any.
  selector() = default;
  selector(const selector&) = delete;
  selector& operator=(const selector&) = delete;
  // Makes a selector without cases. Of several ready cases it takes the first.
  explicit selector(in_order_t) noexcept : in_order_(true) {}

  // Adds a case that receives, and returns its index: 0, 1, 2, ... Throws std::bad_alloc.
  std::size_t add_receive(channel<T>& from) { return add({.from = &receives_.emplace_back(from)}); }
  // Adds a case that sends `value`, and returns its index. `value` is moved from when the case is chosen: assign a new
  // one before the next wait, or disable the case. Throws std::bad_alloc.
  std::size_t add_send(channel<T>& to, T& value) { return add({.to = &sends_.emplace_back(to, value)}); }

  // Switches a case on or off; a closed channel, for example, is always ready. Throws usage_error if no case has the
  // index.
  void enable(std::size_t index, bool on = true) {
    if (index >= size()) throw usage_error("selector: case " + std::to_string(index) + " of " + std::to_string(size()));
    cases_[index].which()->enabled = on;
  }
  // Same as enable(index, false).
  void disable(std::size_t index) { enable(index, false); }
  // The number of cases, with disabled ones.
  [[nodiscard]] std::size_t size() const noexcept { return cases_.size(); }

  // Waits until an enabled case is ready, and takes it. A cancellation point. Throws operation_cancelled,
  // channel_closed if the chosen case sends to a closed channel, usage_error if no case is enabled.
  result wait() { return *wait_until_ns(detail::no_deadline, true); }
  // Waits as wait(), at most for `time`, or until `time`. Returns nullopt if the time passed first.
  [[nodiscard]] std::optional<result> wait_for(relative_timeout time) { return wait_until_ns(time.deadline(), true); }
  [[nodiscard]] std::optional<result> wait_until(absolute_timeout time) { return wait_until_ns(time.deadline(), true); }
  // Takes a ready case; nullopt if none is ready. Never waits.
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

  // The value goes, also if its move throws: a later wait must not find it.
  struct emptied {
    std::optional<T>& value;
    ~emptied() { value.reset(); }
  };

  std::size_t add(entry added) {
    enabled_.resize(cases_.size() + 2);  // so that a wait allocates nothing
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
    if (done.from) {
      const emptied after{done.from->value};
      return result{index, std::move(done.from->value)};
    }
    if (done.to->closed()) throw channel_closed();
    return result{index, std::nullopt};
  }

  const bool in_order_ = false;
  std::deque<receive> receives_;  // deques, because cases_ has pointers to their elements
  std::deque<send> sends_;
  std::vector<entry> cases_;                            // by index
  timer timer_{detail::no_deadline};                    // the time limit of a wait, as its first case
  std::vector<detail::select_case*> enabled_{nullptr};  // of the present wait; with room for all cases
  std::vector<detail::select_case*> by_source_;         // the enabled ones again, for choose()
};

}  // namespace ulexite
