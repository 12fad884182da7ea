#include <ulexite/testing/driver.hpp>
#include <ulexite/testing/saturated_sum.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace ulexite::testing {
namespace {

// The start time of each run: late enough for "an hour ago".
constexpr std::int64_t epoch = std::int64_t{1'000'000} * 1'000'000'000;

// How slow a machine is unless the test says it: longer than sleeps that stand for input and output usually are, and
// shorter than usual time limits.
constexpr std::chrono::milliseconds usual_slowness{10};

// A slow run of `mixed` needs more than the way of a message. Otherwise what arrives could not come first.
std::int64_t slowness_of(const explore_options& options) noexcept {
  if (options.slowness) return options.slowness->count();
  if (options.strategy != "mixed") return 0;
  const auto way = saturated_sum(options.network.latency.count(), options.network.jitter);
  return saturated_sum(way, usual_slowness);
}

}  // namespace

driver::driver(const explore_options& options) noexcept
    : options_(options), slowness_(slowness_of(options)), sockets_(options.network, *this) {
  network = &sockets_;
}

std::uint64_t this_run() noexcept {
  const auto* const own = static_cast<const driver*>(detail::this_controller());
  return own ? own->number() : 0;
}

void driver::begin(strategy& how) noexcept {
  static constinit std::atomic<std::uint64_t> numbers{0};         // State: the runs of the process so far
  number_ = numbers.fetch_add(1, std::memory_order_relaxed) + 1;  // counter
  {
    const std::lock_guard lock(guard_);
    how_ = &how;
    made_.clear();
    now = epoch;
  }
  sockets_.clear();
  open_window();
  fibers = 0;
  over = false;
  reason_.clear();
  steps_ = points_ = yielder_ = 0;
  overtaking_ = false;
  digest_ = 14695981039346656037U;
  body_returned_ = false;
}

// The largest time means that there is no timer.
void driver::open_window() noexcept {
  const std::int64_t end = saturated_sum(now, std::chrono::nanoseconds(slowness_));
  overtake_until = slowness_ > 0 ? std::min(end, INT64_MAX - 1) : 0;
}

void driver::end() noexcept {
  const std::lock_guard lock(guard_);
  how_ = nullptr;
}

void driver::made(std::size_t choice) {
  const std::lock_guard lock(guard_);
  made_.push_back(static_cast<std::uint32_t>(choice));
}

bool driver::count_step() noexcept {
  ticks_.store(ticks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // owner-written
  if (++steps_ > options_.max_steps) over = true;
  return over;
}

std::size_t driver::decide(std::span<const std::uint64_t> candidates, moment moment) {
  const std::size_t picked = how_->pick(candidates, moment);
  made(picked);
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
  made(chosen);
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
  {
    const std::lock_guard lock(guard_);
    now = std::max(now, next);
  }
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
