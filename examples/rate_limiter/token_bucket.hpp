#pragma once

#include <ulexite.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

// Lets `rate` pass per second, and after a pause up to `burst` together: in t seconds never more than burst + rate * t.
//
// A channel is the bucket: its buffer holds the tokens, and waiters queue in it in the order of their arrival.
class token_bucket {
 public:
  // Full at first. `rate` per second, at most a million. Throws std::invalid_argument if the bucket is too small for
  // the tokens of a millisecond, because it is filled once in that time.
  token_bucket(double rate, std::size_t burst)
      : interval_(static_cast<std::int64_t>(std::ceil(1e9 / rate))), tokens_(burst) {
    if (const double least = std::ceil(rate / 1000); static_cast<double>(burst) < least)
      throw std::invalid_argument("this rate needs a burst of at least " + std::to_string(std::lround(least)));
    while (add_token()) {
    }
  }

  // Fills the bucket. A fiber runs it until the fiber is cancelled.
  void fill() {
    using namespace std::chrono_literals;
    const auto start = ulexite::steady_clock::now();
    std::int64_t made = 0;
    ulexite::ticker ticks(std::max<std::chrono::nanoseconds>(interval_, 1ms));
    for (const auto now : ticks.channel()) {  // late ticks are missed: so the time counts, not the ticks
      const std::int64_t due = (now - start) / interval_;
      while (made < due && add_token()) ++made;
      made = due;  // tokens for a full bucket are lost
    }
  }

  // Waits for a token, at most for `patience`; false if the time passed first. A cancellation point.
  bool take(std::chrono::nanoseconds patience) {
    bool taken = true;
    ulexite::select(ulexite::in_order, ulexite::on_receive(tokens_, [](auto) {}),
                    ulexite::after(patience, [&] { taken = false; }));
    return taken;
  }

 private:
  struct token {};

  bool add_token() {
    token one;
    return tokens_.try_send(one) == ulexite::channel_status::ok;
  }

  const std::chrono::nanoseconds interval_;
  ulexite::channel<token> tokens_;
};
