#pragma once

#include <ulexite/runtime/join_handle.hpp>
#include <ulexite/sync/channel.hpp>

#include <chrono>

namespace ulexite {

// Sends the time on a channel at regular intervals. The value is the time of the tick itself. A slow receiver misses
// ticks: at most one waits for it.
//
//   ticker every_second(1s);
//   for (auto now : every_second.channel()) ...
class ticker {
 public:
  // Starts the ticks: tick n is n periods after this call. Starts a fiber: throws as spawn, and usage_error for a
  // period that is not above zero.
  explicit ticker(std::chrono::nanoseconds period);
  // Calls stop(), and waits for the end of its fiber.
  ~ticker();

  // The channel of the ticks. stop() closes it.
  [[nodiscard]] ulexite::channel<steady_clock::time_point>& channel() & noexcept { return ticks_; }

  // Ends the ticks, and closes the channel. A second call does nothing. Never waits. Any fiber or thread.
  void stop() noexcept;

 private:
  ulexite::channel<steady_clock::time_point> ticks_{1};
  join_handle<> fiber_;
};

}  // namespace ulexite
