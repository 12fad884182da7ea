#pragma once

// Counters, which redis keeps.

#include <ulexite/interop/redis.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace redis_counter {

namespace redis = ulexite::redis;

// Redis did not execute a command, or it is unknown whether it did.
struct failure : std::runtime_error {
  enum kind {
    refused,      // it answered with an error, and did nothing
    unfit,        // as refused: the value is not a number
    unreachable,  // the command was not sent: there was no connection in time
    broken,       // the connection ended before the reply arrived: unknown
    late,         // the reply did not arrive in time: unknown
  };
  failure(kind which, const std::string& why) : std::runtime_error(why), what_kind(which) {}
  kind what_kind;
};

// Each call must be in a deadline_scope. It waits until the deadline, and then throws failure. It never repeats a
// command that was sent, because an increment might count twice. All are cancellation points. Any number of fibers may
// use it at the same time.
class counters {
 public:
  explicit counters(redis::pool& connections) : connections_(connections) {}

  // The new value. A counter that does not exist begins at 0.
  std::int64_t add(std::string_view name, std::int64_t by);
  // nullopt: there is none.
  std::optional<std::int64_t> get(std::string_view name);
  // Removes a counter. False if there was none.
  bool remove(std::string_view name);
  // All counters. Counters that are added or removed during the call may be missing.
  std::map<std::string, std::int64_t> all();
  // Returns if redis answers.
  void ping();

 private:
  template <class Use>
  auto told(Use&& use) const;
  std::string add_page(const std::string& cursor, std::map<std::string, std::int64_t>& found);

  redis::pool& connections_;
};

}  // namespace redis_counter
