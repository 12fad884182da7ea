// Random operations on a few channels, some by select and selector, beside a sequential reference.
//
// There is one worker, and the driver lets all others run after each step. So before the next operation begins, each
// one is either done or in its queues. The reference then knows which operations must be done, with which values. If a
// select could do several cases, it accepts any of them, and continues from the chosen one.
//
// ULEXITE_TEST_SEED repeats a run up to the choices of select.

#include "support/runtime_fixture.hpp"

#include <ulexite/base/random.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <random>

namespace {

using namespace ulexite;
using namespace ulexite::test;

constexpr std::size_t most_cases = 3;

struct slot {
  std::size_t channel = 0;
  bool sends = false;
};

enum class outcome { pending, sent, received, closed, cancelled, nothing };

struct result {
  outcome what = outcome::pending;
  int value = 0;
  bool operator==(const result&) const = default;
};

enum class way { select, selector, plain };  // plain: send or receive, with one slot

struct operation {
  int value = 0;  // which it would send, and no other does
  way how = way::select;
  bool in_order = false;
  bool may_wait = true;
  std::vector<slot> slots;

  // Its outcome.
  result made;
  std::size_t chosen = 0;
  join_handle<> fiber;
};

// ---- the reference ----

struct ideal_channel {
  std::size_t capacity = 0;
  bool closed = false;
  std::deque<int> values;
};

// An event that must have happened: how an operation was done, by a slot with that channel and, unless it was a close,
// that direction.
struct event {
  slot by;
  result made;
};

class reference {
 public:
  std::vector<ideal_channel> channels;
  std::list<operation*> waiting;  // oldest first
  std::map<operation*, event> due;

  bool possible(const operation& of, slot at) const {
    const ideal_channel& channel = channels[at.channel];
    if (channel.closed || partner(of, at)) return true;
    return at.sends ? channel.values.size() < channel.capacity : !channel.values.empty();
  }
  std::optional<std::size_t> first_possible(const operation& of) const {
    for (std::size_t i = 0; i < of.slots.size(); ++i)
      if (possible(of, of.slots[i])) return i;
    return std::nullopt;
  }

  // Does what `of` has chosen: it is possible.
  void perform(operation& of, slot at) { due[&of] = {at, at.sends ? send(of, at) : receive(of, at)}; }
  void close(std::size_t index) {
    channels[index].closed = true;
    for (auto it = waiting.begin(); it != waiting.end();) {
      operation* const each = *it++;
      if (std::ranges::any_of(each->slots, [&](slot s) { return s.channel == index; }))
        finish(*each, {.channel = index}, {outcome::closed});
    }
  }
  void cancel(operation& of) { finish(of, {}, {outcome::cancelled}); }

 private:
  // The oldest who waits to do the opposite.
  operation* partner(const operation& of, slot at) const {
    for (operation* const each : waiting)
      if (each != &of &&
          std::ranges::any_of(each->slots, [&](slot s) { return s.channel == at.channel && s.sends != at.sends; }))
        return each;
    return nullptr;
  }
  void finish(operation& other, slot by, result made) {
    waiting.remove(&other);
    due[&other] = {by, made};
  }
  result send(operation& of, slot at) {
    ideal_channel& channel = channels[at.channel];
    if (channel.closed) return {outcome::closed};
    if (operation* const receiver = partner(of, at)) {
      finish(*receiver, {at.channel, false}, {outcome::received, of.value});
    } else {
      channel.values.push_back(of.value);
    }
    return {outcome::sent};
  }
  result receive(operation& of, slot at) {
    ideal_channel& channel = channels[at.channel];
    operation* const sender = partner(of, at);
    if (channel.values.empty() && !sender) return {outcome::closed};
    if (sender) {
      channel.values.push_back(sender->value);  // behind the existing values, for a moment too many
      finish(*sender, {at.channel, true}, {outcome::sent});
    }
    const int value = channel.values.front();
    channel.values.pop_front();
    return {outcome::received, value};
  }
};

// ---- the real ones ----

class game {
 public:
  explicit game(detail::random& random) : random_(random) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t capacity = random_.below(4);
      real_.emplace_back(capacity);
      ideal_.channels.emplace_back().capacity = capacity;
    }
  }

  void play(int steps) {
    for (step_ = 0; step_ < steps && !testing::Test::HasFailure(); ++step_) {
      const std::uint32_t what = random_.below(40);
      if (what == 0) {
        close(random_.below(3));
      } else if (what < 5 && !ideal_.waiting.empty()) {
        cancel(**std::next(ideal_.waiting.begin(), random_.below(static_cast<std::uint32_t>(ideal_.waiting.size()))));
      } else {
        begin();
      }
      compare();
    }
    for (std::size_t i = 0; i < real_.size(); ++i) close(i);
    if (!testing::Test::HasFailure()) compare();
    for (operation& each : operations_) each.fiber.join();
  }

 private:
  static void let_all_run() {
    for (int i = 0; i < 5; ++i) this_fiber::yield();
  }

  void begin() {
    operation& made = operations_.emplace_back();
    made.value = static_cast<int>(operations_.size());
    made.how = way(random_.below(3));
    made.in_order = random_.below(3) == 0;
    made.may_wait = ideal_.waiting.size() < 6 && random_.below(4) != 0;
    for (std::size_t i = made.how == way::plain ? 1 : 1 + random_.below(most_cases); i > 0; --i)
      made.slots.push_back({random_.below(3), random_.below(2) == 0});
    made.fiber = spawn([this, &made] { perform(made); });
    let_all_run();
    if (!made.may_wait) wait_until([&] { return made.made.what != outcome::pending; });  // a timer's time, perhaps
    expect(made);
  }

  // Computes in the reference the outcome of the operation that has just begun.
  void expect(operation& made) {
    const auto first = ideal_.first_possible(made);
    if (!first) {
      if (made.may_wait) {
        ideal_.waiting.push_back(&made);
      } else {
        ideal_.due[&made] = {{}, {outcome::nothing}};
      }
      return;
    }
    ASSERT_NE(made.made.what, outcome::pending) << text(made) << " waits, but could do its case " << *first;
    ASSERT_LT(made.chosen, made.slots.size()) << text(made);
    const slot by = made.slots[made.chosen];
    ASSERT_TRUE(ideal_.possible(made, by)) << text(made);
    if (made.in_order) ASSERT_EQ(made.chosen, *first) << text(made);
    ideal_.perform(made, by);
  }

  void close(std::size_t index) {
    EXPECT_EQ(real_[index].close(), !ideal_.channels[index].closed);
    if (!ideal_.channels[index].closed) ideal_.close(index);
    let_all_run();
  }
  void cancel(operation& of) {
    EXPECT_TRUE(of.fiber.request_stop());
    ideal_.cancel(of);
    let_all_run();
  }

  // The operations that are done, and the state of the channels.
  void compare() {
    for (operation& each : operations_) {
      const auto expected = ideal_.due.find(&each);
      if (expected == ideal_.due.end()) {
        ASSERT_EQ(each.made.what, outcome::pending) << text(each) << " must wait";
        continue;
      }
      const auto& [by, made] = expected->second;
      ASSERT_EQ(each.made.what, made.what) << text(each);
      ASSERT_EQ(each.made.value, made.value) << text(each);
      if (made.what == outcome::nothing || made.what == outcome::cancelled) continue;
      ASSERT_LT(each.chosen, each.slots.size()) << text(each);
      ASSERT_EQ(each.slots[each.chosen].channel, by.channel) << text(each);
      if (made.what != outcome::closed) ASSERT_EQ(each.slots[each.chosen].sends, by.sends) << text(each);
    }
    for (std::size_t i = 0; i < real_.size(); ++i) {
      ASSERT_EQ(real_[i].size(), ideal_.channels[i].values.size()) << "channel " << i << ", step " << step_;
      ASSERT_EQ(real_[i].is_closed(), ideal_.channels[i].closed);
    }
  }

  std::string text(const operation& of) const {
    std::string made = "step " + std::to_string(step_) + ": operation " + std::to_string(of.value);
    made += of.how == way::select ? ", select" : of.how == way::selector ? ", selector" : ", plain";
    made += of.in_order ? " in order" : "";
    made += of.may_wait ? "" : " without waiting";
    for (const slot& each : of.slots)
      made += std::string(each.sends ? ", send to " : ", receive from ") + std::to_string(each.channel);
    return made + "; chosen " + std::to_string(of.chosen);
  }

  // ---- in the operation's own fiber ----

  void perform(operation& of) {
    try {
      switch (of.how) {
        case way::select: by_select(of); break;
        case way::selector: by_selector(of); break;
        case way::plain: plain(of); break;
      }
    } catch (const operation_cancelled&) {
      of.made = {outcome::cancelled};
    }
  }

  // A send to a closed channel throws, and does not tell by which case: any that sends to a closed one.
  void closed(operation& of) {
    of.made = {outcome::closed};
    of.chosen = 0;
    while (!of.slots[of.chosen].sends || !real_[of.slots[of.chosen].channel].is_closed()) ++of.chosen;
  }

  static result from(std::optional<int> value) {
    return value ? result{outcome::received, *value} : result{outcome::closed};
  }

  // Each slot as two cases, one of them switched on; one more case for not waiting.
  void by_select(operation& of) {
    std::array<slot, most_cases> at{};
    std::ranges::copy(of.slots, at.begin());
    const auto on = [&](std::size_t i, bool send) { return i < of.slots.size() && at[i].sends == send; };
    const auto keep = [&](std::optional<int> value) { of.made = from(value); };
    const auto sent = [&] { of.made = {outcome::sent}; };
    const auto channel = [&](std::size_t i) -> ulexite::channel<int>& { return real_[at[i].channel]; };
    int value = of.value;
    const auto choose = [&](auto... order) {
      return select(
          order..., when(on(0, false), on_receive(channel(0), keep)),
          when(on(0, true), on_send(channel(0), value, sent)), when(on(1, false), on_receive(channel(1), keep)),
          when(on(1, true), on_send(channel(1), value, sent)), when(on(2, false), on_receive(channel(2), keep)),
          when(on(2, true), on_send(channel(2), value, sent)),
          when(!of.may_wait, otherwise([&] { of.made = {outcome::nothing}; })));
    };
    try {
      of.chosen = (of.in_order ? choose(in_order) : choose()) / 2;
    } catch (const channel_closed&) {
      closed(of);
    }
  }

  void by_selector(operation& of) {
    selector<int> any, first(in_order);
    selector<int>& cases = of.in_order ? first : any;
    int value = of.value;
    for (const slot& each : of.slots)
      each.sends ? cases.add_send(real_[each.channel], value) : cases.add_receive(real_[each.channel]);
    try {
      const auto done = of.may_wait ? cases.wait() : cases.try_wait();
      if (!done) {
        of.made = {outcome::nothing};
        return;
      }
      of.chosen = done->index;
      of.made = of.slots[done->index].sends ? result{outcome::sent} : from(done->value);
    } catch (const channel_closed&) {
      closed(of);
    }
  }

  // Where it may not wait, by try_ or by a time limit of zero.
  void plain(operation& of) {
    ulexite::channel<int>& channel = real_[of.slots[0].channel];
    const bool in_time = of.value % 2 == 0;
    int value = of.value;
    channel_status status = channel_status::ok;
    if (of.slots[0].sends) {
      status = of.may_wait ? channel.send_for(value, 1000h)
               : in_time   ? channel.send_for(value, 0s)
                           : channel.try_send(value);
      of.made = {outcome::sent};
    } else {
      status = of.may_wait ? channel.receive_for(value, 1000h)
               : in_time   ? channel.receive_for(value, 0s)
                           : channel.try_receive(value);
      of.made = {outcome::received, value};
    }
    if (status == channel_status::closed) of.made = {outcome::closed};
    if (status == channel_status::would_block || status == channel_status::timeout) of.made = {outcome::nothing};
  }

  detail::random& random_;
  std::deque<ulexite::channel<int>> real_;
  reference ideal_;
  std::deque<operation> operations_;
  int step_ = 0;
};

std::uint64_t chosen_seed() {
  const char* const given = std::getenv("ULEXITE_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

class ChannelReference : public RuntimeTest {};

TEST_F(ChannelReference, ChannelsAndSelectsDoWhatTheReferenceAllows) {
  const std::uint64_t seed = chosen_seed();
  std::printf("ULEXITE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  make(1).run([&] {
    detail::random random(seed);
    for (int i = 0; i < times(2000) && !HasFailure(); ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", game " + std::to_string(i));
      game(random).play(30);
    }
  });
}

}  // namespace
