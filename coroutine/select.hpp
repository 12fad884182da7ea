#pragma once

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/sync/select.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

namespace ulexite {
namespace detail {

// A select, whose cases are in the frame of the coroutine too.
template <class... Case>
class select_operation final : public stackless_wait {
  static_assert(fits_in_a_frame<Case...>,
                "a value that waits in a coroutine's frame must not be aligned to more than two pointers");
  static constexpr std::size_t count = sizeof...(Case);

 public:
  select_operation(bool in_order, Case&... cases)
      : stackless_wait(waiting_for(wait_kind::select, nullptr, cancellable::yes)),
        cases_(cases...),
        in_order_(in_order) {
    const auto add = [&](select_case& each) {
      if (each.enabled) by_preference_[size_] = by_source_[size_] = &each, ++size_;
    };
    (add(cases), ...);
    if (size_ == 0) throw usage_error("co_select without a case that can ever be ready");
  }

  [[nodiscard]] bool ready(agent& self) {
    if ((self.waits_forbidden || needs_timer(self, earliest(cases())->deadline)) && !attempt(false)) {
      check_may_wait(self, wait_kind::select);
      provide_timer();
    }
    if (!chosen_ && !attempt(true)) {
      begin(self);
      return false;
    }
    return goes_on(self);
  }
  void block() { chosen_ = choose(cases(), {by_source_.data(), size_}, in_order_, true); }
  std::size_t result() {
    if (failed_) rethrow_kept();
    if (!chosen_) throw_cancelled();
    return std::apply([&](Case&... cases) { return run_chosen(chosen_, cases...); }, cases_);
  }

 private:
  [[nodiscard]] std::span<select_case*> cases() noexcept { return {by_preference_.data(), size_}; }
  bool attempt(bool may_wait) {
    chosen_ = try_or_enter(cases(), {by_source_.data(), size_}, this_caller(), in_order_, may_wait);
    return chosen_ != nullptr;
  }
  void begin(agent& self) noexcept {
    set_mode(waiting_for(wait_kind::select, by_preference_[0]->source, cancellable::yes));
    stackless_wait::begin(self, nullptr, earliest(cases())->deadline);
  }
  [[nodiscard]] bool resumed(agent& self) noexcept override {
    if (chosen_) return true;  // it has yielded
    const wake_reason reason = end(self);
    chosen_ = leave_all(cases(), reason, earliest(cases()));
    if (chosen_ || reason == wake_reason::cancelled) return true;
    try {
      if (attempt(true)) return true;
    } catch (...) {
      keep_exception(self);
      return failed_ = true;
    }
    begin(self);
    return false;
  }

  std::tuple<Case&...> cases_;
  std::array<select_case*, count> by_preference_, by_source_;
  std::size_t size_ = 0;
  const bool in_order_;
  bool failed_ = false;
  select_case* chosen_ = nullptr;
};

template <class Case>
concept waiting_case = selectable<Case> && !is_otherwise<std::remove_cvref_t<Case>>;

}  // namespace detail

// As select, without otherwise: what never waits needs no co_await. The handlers are functions, called in the coroutine
// after the choice.
//
//   co_await co_select(on_receive(requests, [&](std::optional<request> r) { ... }), after(1s));
template <detail::waiting_case... Case>
[[nodiscard]] auto co_select(Case&&... cases) {
  return detail::select_operation<std::remove_reference_t<Case>...>(false, cases...);
}
template <detail::waiting_case... Case>
[[nodiscard]] auto co_select(in_order_t, Case&&... cases) {
  return detail::select_operation<std::remove_reference_t<Case>...>(true, cases...);
}

}  // namespace ulexite
