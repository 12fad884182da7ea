#include <ulexite/testing/driver.hpp>
#include <ulexite/testing/saturated_sum.hpp>

#include <algorithm>
#include <utility>

namespace ulexite::testing {
namespace {

// The start time of each run: late enough for "an hour ago".
constexpr std::int64_t epoch = std::int64_t{1'000'000} * 1'000'000'000;

}  // namespace

void driver::begin(strategy& how) noexcept {
  how_ = &how;
  sockets_.clear();
  now = epoch;
  open_window();
  fibers = 0;
  over = false;
  reason_.clear();
  made_.clear();
  steps_ = points_ = yielder_ = 0;
  overtaking_ = false;
  digest_ = 14695981039346656037U;
  body_returned_ = false;
}

// The largest time means that there is no timer.
void driver::open_window() noexcept {
  const bool open = options_.slowness.count() > 0;
  overtake_until = open ? std::min(saturated_sum(now, options_.slowness), INT64_MAX - 1) : 0;
}

bool driver::count_step() noexcept {
  if (++steps_ > options_.most_steps) over = true;
  return over;
}

std::size_t driver::decide(std::span<const std::uint64_t> candidates, moment moment) {
  const std::size_t picked = how_->pick(candidates, moment);
  made_.push_back(static_cast<std::uint32_t>(picked));
  return picked;
}

// Excludes the fiber that has just yielded, if there are other fibers. Time alone need not pass.
std::size_t driver::decide_without_yielder(std::span<const std::uint64_t> candidates, moment moment) {
  others_.clear();
  for (const std::uint64_t each : candidates)
    if (each != yielder_) others_.push_back(each);
  const bool only_time = others_.size() == 1 && others_[0] == passing_time;
  if (others_.size() == candidates.size() || only_time) return decide(candidates, moment);
  const std::uint64_t picked = others_.size() == 1 ? others_[0] : others_[decide(others_, moment)];
  return static_cast<std::size_t>(std::ranges::find(candidates, picked) - candidates.begin());
}

std::size_t driver::pick(std::span<const std::uint64_t> candidates, moment moment) noexcept {
  if (count_step()) return 0;
  ++points_;
  std::size_t picked = 0;
  if (candidates.size() == 1) {
    how_->passed(candidates[0]);
  } else {
    picked = yielder_ != 0 && moment == moment::left ? decide_without_yielder(candidates, moment)
                                                     : decide(candidates, moment);
  }
  yielder_ = 0;
  overtaking_ = candidates[picked] == passing_time;
  mix(candidates.size());
  mix(candidates[picked]);
  return picked;
}

std::uint32_t driver::choose(std::uint32_t bound) noexcept {
  if (bound <= 1) return 0;
  const std::uint32_t chosen = how_->choose(bound);
  made_.push_back(chosen);
  mix(bound);
  mix(chosen);
  return chosen;
}

void driver::yielded(std::uint64_t fiber) noexcept {
  yielder_ = fiber;
  how_->yielded(fiber);
}

bool driver::idle(std::int64_t next) noexcept {
  if (body_returned_ || next == INT64_MAX || count_step()) return false;
  now = std::max(now, next);
  // A new window begins only when nothing can run. Otherwise timers could overtake a fiber without an end.
  const bool nothing_can_run = !std::exchange(overtaking_, false);
  if (nothing_can_run) open_window();
  mix(static_cast<std::uint64_t>(now));
  return true;
}

choice_list driver::choices() const {
  choice_list list;
  for (std::size_t i = 0; i < made_.size(); ++i)
    if (made_[i] != 0) list.emplace_back(i, made_[i]);
  return list;
}

}  // namespace ulexite::testing
