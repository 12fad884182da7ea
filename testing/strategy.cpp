#include <ulexite/base/random.hpp>
#include <ulexite/testing/strategy.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace ulexite::testing {
namespace {

constexpr std::uint64_t passing_time = detail::controller::passing_time;

// Picks any candidate, but rarely that time passes.
std::size_t pick_any(detail::random& dice, std::span<const std::uint64_t> who) {
  std::size_t count = who.size();
  if (who.back() == passing_time) {
    if (dice.below(16) == 0) return count - 1;
    --count;
  }
  return dice.below(static_cast<std::uint32_t>(count));
}

class random_strategy final : public strategy {
 public:
  void begin(std::uint64_t seed, std::uint64_t) override { dice_ = detail::random(seed); }
  std::size_t pick(std::span<const std::uint64_t> who, moment) override { return pick_any(dice_, who); }
  std::uint32_t choose(std::uint32_t bound) override { return dice_.below(bound); }

 private:
  detail::random dice_{0};
};

// Each fiber has a priority, and of the fibers that can run the one with the highest priority runs. At depth - 1
// points, drawn from the mean number of points, the running fiber falls below all others. Each point counts, even if
// only one fiber can run. Otherwise no change could fall into a long stretch of one fiber. A much longer run continues
// at random. Otherwise a fiber that polls could keep the others from doing what it polls for.
class pct_strategy final : public strategy {
 public:
  explicit pct_strategy(std::uint64_t depth) : depth_(depth) {}
  void begin(std::uint64_t seed, std::uint64_t length) override {
    dice_ = detail::random(seed);
    length_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(length, 10, 1'000'000));
    priorities_.clear();
    time_priority_ = draw();
    lowest_ = low;
    at_ = 0;
    changes_.clear();
    for (std::uint64_t i = 1; i < depth_; ++i) changes_.push_back(1 + dice_.below(length_));
    std::ranges::sort(changes_, std::greater{});
  }
  std::size_t pick(std::span<const std::uint64_t> who, moment) override {
    ++at_;
    if (is_long()) return pick_any(dice_, who);
    std::size_t best = highest(who);
    while (change_is_due()) {
      priority(who[best]) = --lowest_;
      best = highest(who);
    }
    if (who[best] == passing_time) time_priority_ = draw();  // otherwise time would pass for ever
    return best;
  }
  std::uint32_t choose(std::uint32_t bound) override { return dice_.below(bound); }
  void yielded(std::uint64_t fiber) override { priority(fiber) = --lowest_; }
  void passed(std::uint64_t fiber) override {
    ++at_;
    while (!is_long() && change_is_due()) priority(fiber) = --lowest_;
  }

 private:
  static constexpr std::uint64_t low = std::uint64_t{1} << 62;

  [[nodiscard]] bool is_long() const noexcept { return at_ > 2 * std::uint64_t{length_} + 100; }
  bool change_is_due() noexcept {
    if (changes_.empty() || changes_.back() > at_) return false;
    changes_.pop_back();
    return true;
  }
  std::uint64_t draw() noexcept { return low + (dice_.next() >> 2); }
  std::uint64_t& priority(std::uint64_t fiber) {
    if (fiber == passing_time) return time_priority_;
    while (priorities_.size() <= fiber) priorities_.push_back(draw());
    return priorities_[fiber];
  }
  std::size_t highest(std::span<const std::uint64_t> who) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < who.size(); ++i)
      if (priority(who[i]) > priority(who[best])) best = i;
    return best;
  }

  const std::uint64_t depth_;
  std::uint32_t length_ = 0;
  std::uint64_t at_ = 0, lowest_ = low, time_priority_ = 0;
  detail::random dice_{0};
  std::vector<std::uint64_t> priorities_;
  std::vector<std::uint64_t> changes_;  // the next one last
};

// Uses one strategy after the other, each for one run. Each third round is slow: there time may pass although fibers
// can run. In the other rounds it may not, unless all runs may be slow.
class mixed_strategy final : public strategy {
 public:
  explicit mixed_strategy(bool always_slow) : always_slow_(always_slow) {}
  void begin(std::uint64_t seed, std::uint64_t length) override { own().begin(seed, length); }
  std::size_t pick(std::span<const std::uint64_t> who, moment moment) override {
    const bool slow = always_slow_ || turn_ / of_.size() == 2;
    if (!slow && who.back() == passing_time) who = who.first(who.size() - 1);
    if (who.size() > 1) return own().pick(who, moment);
    own().passed(who[0]);
    return 0;
  }
  std::uint32_t choose(std::uint32_t bound) override { return own().choose(bound); }
  void yielded(std::uint64_t fiber) override { own().yielded(fiber); }
  void passed(std::uint64_t fiber) override { own().passed(fiber); }
  bool advance() override {
    turn_ = (turn_ + 1) % (3 * of_.size());
    return true;
  }

 private:
  strategy& own() const noexcept { return *of_[turn_ % of_.size()]; }

  const bool always_slow_;
  std::array<std::unique_ptr<strategy>, 3> of_{std::make_unique<random_strategy>(), std::make_unique<pct_strategy>(2),
                                               std::make_unique<pct_strategy>(3)};
  std::size_t turn_ = 0;
};

// In run n a fiber runs for n operations. Other choices are random.
class round_robin_strategy final : public strategy {
 public:
  void begin(std::uint64_t seed, std::uint64_t) override {
    dice_ = detail::random(seed);
    points_ = done_ = 0;
  }
  std::size_t pick(std::span<const std::uint64_t> who, moment moment) override {
    ++points_;
    if (moment == moment::operation && ++done_ < turn_) return 0;
    done_ = 0;
    return moment == moment::operation && who[1] != passing_time ? 1 : 0;
  }
  std::uint32_t choose(std::uint32_t bound) override { return dice_.below(bound); }
  bool advance() override { return ++turn_ <= points_; }

 private:
  detail::random dice_{0};
  std::uint64_t turn_ = 1, done_ = 0, points_ = 0;
};

// Depth first.
class exhaustive_strategy final : public strategy {
 public:
  explicit exhaustive_strategy(std::uint64_t preemptions) : most_(preemptions) {}
  void begin(std::uint64_t, std::uint64_t) override { at_ = preemptions_ = 0; }
  std::size_t pick(std::span<const std::uint64_t> who, moment moment) override {
    const bool may_preempt = preemptions_ < most_;
    if (moment == moment::operation && !may_preempt) return 0;
    const std::size_t picked = branch(!may_preempt && who.back() == passing_time ? who.size() - 1 : who.size());
    if ((moment == moment::operation && picked != 0) || who[picked] == passing_time) ++preemptions_;
    return picked;
  }
  std::uint32_t choose(std::uint32_t bound) override { return static_cast<std::uint32_t>(branch(bound)); }
  bool advance() override {
    path_.resize(std::min(path_.size(), at_));
    while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

 private:
  struct fork {
    std::size_t taken, of;
  };
  std::size_t branch(std::size_t of) {
    if (of == 1) return 0;
    if (at_ == path_.size()) path_.push_back({0, of});
    return std::min(path_[at_++].taken, of - 1);
  }

  const std::uint64_t most_;
  std::uint64_t preemptions_ = 0;
  std::size_t at_ = 0;
  std::vector<fork> path_;
};

// With an empty list no fiber is preempted, and the fiber that has been runnable longest runs.
class list_strategy final : public strategy {
 public:
  explicit list_strategy(choice_list choices) : choices_(std::move(choices)) {}
  void begin(std::uint64_t, std::uint64_t) override {
    at_ = next_ = 0;
    misfit_.clear();
  }
  std::size_t pick(std::span<const std::uint64_t> who, moment) override { return take(who.size()); }
  std::uint32_t choose(std::uint32_t bound) override { return static_cast<std::uint32_t>(take(bound)); }
  void check_fit() const override {
    std::string why = misfit_;
    if (why.empty() && next_ < choices_.size())
      why = "names choice " + std::to_string(choices_[next_].first) + ", but the run had " + std::to_string(at_) +
            " choices, counted from 0";
    if (!why.empty())
      throw std::invalid_argument("ulexite::testing::explore: the schedule to repeat is not of this test: it " + why);
  }
  bool advance() override { return false; }

 private:
  std::size_t take(std::size_t bound) {
    const std::uint64_t at = at_++;
    if (next_ == choices_.size() || choices_[next_].first != at) return 0;
    const std::uint64_t what = choices_[next_++].second;
    if (what < bound) return what;
    if (misfit_.empty())
      misfit_ = "takes " + std::to_string(what) + " at choice " + std::to_string(at) + ", which had 0 to " +
                std::to_string(bound - 1) + " only";
    return bound - 1;
  }

  const choice_list choices_;
  std::uint64_t at_ = 0;
  std::size_t next_ = 0;
  std::string misfit_;  // the first choice that does not fit
};

// Reads the number at the start of `text`, and removes it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

constexpr std::string_view list_prefix = "list:";

}  // namespace

std::string to_string(const choice_list& choices) {
  std::string text(list_prefix);
  for (const auto& [at, what] : choices)
    text += (text.size() > list_prefix.size() ? "," : "") + std::to_string(at) + "=" + std::to_string(what);
  return text;
}

choice_list parse_choices(const std::string& text) {
  choice_list choices;
  std::string_view rest = text;
  bool good = take_prefix(rest, list_prefix);
  while (good && !rest.empty()) {
    const auto at = take_number(rest);
    const bool equals = take_prefix(rest, "=");
    const auto what = take_number(rest);
    good = at && equals && what && (rest.empty() || take_prefix(rest, ",")) &&
           (choices.empty() || choices.back().first < *at);
    if (good) choices.emplace_back(*at, *what);
  }
  if (!good)
    throw std::invalid_argument("ulexite::testing::explore: '" + text +
                                "' is no schedule to replay, as \"list:4=1,9=2\"");
  return choices;
}

std::unique_ptr<strategy> make_replay(choice_list choices) {
  return std::make_unique<list_strategy>(std::move(choices));
}

std::unique_ptr<strategy> make_strategy(const explore_options& options) {
  const std::string& name = options.strategy;
  if (name == "mixed") return std::make_unique<mixed_strategy>(options.slowness.has_value());
  if (name == "random") return std::make_unique<random_strategy>();
  if (name == "round_robin") return std::make_unique<round_robin_strategy>();
  if (name == "cooperative") return make_replay({});
  std::string_view rest = name;
  const bool pct = take_prefix(rest, "pct:");
  if (pct || take_prefix(rest, "exhaustive:")) {
    const auto number = take_number(rest);
    if (number && rest.empty()) {
      if (!pct) return std::make_unique<exhaustive_strategy>(*number);
      if (*number > 0) return std::make_unique<pct_strategy>(*number);
    }
  }
  throw std::invalid_argument("ulexite::testing::explore: '" + name +
                              "' is no strategy: mixed, random, pct:DEPTH, round_robin, exhaustive:N or cooperative");
}

}  // namespace ulexite::testing
