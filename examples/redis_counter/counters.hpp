#pragma once

// Counters, which redis keeps.

#include "pool.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace redis_counter {

// Redis did not do what it was asked, or nobody knows whether it did.
struct failure : std::runtime_error {
  enum kind {
    refused,      // it answered with an error, and did nothing
    unfit,        // as refused: what lies there cannot be counted with
    unreachable,  // it was not asked: there was no connection in time
    broken,       // the connection ended before the reply came: not known
    late,         // the reply did not come in time: not known
  };
  failure(kind which, const std::string& why) : std::runtime_error(why), what_kind(which) {}
  kind what_kind;
};

// Each call waits for as long as the deadline_scope around it allows, which there must be; then it throws failure. No
// command that was sent is repeated: an increment might count twice. All are cancellation points. Used by any number of
// fibers at a time.
class counters {
 public:
  explicit counters(pool& connections) : connections_(connections) {}

  // The new value. A counter that does not exist begins at 0.
  std::int64_t add(std::string_view name, std::int64_t by);
  // nullopt: there is none.
  std::optional<std::int64_t> get(std::string_view name);
  // Was there one?
  bool remove(std::string_view name);
  // All of them; of those that come or go meanwhile some.
  std::map<std::string, std::int64_t> all();
  // Returns if redis answers.
  void ping();

 private:
  redis::reply command(std::span<const std::string_view> words);

  pool& connections_;
};

}  // namespace redis_counter
