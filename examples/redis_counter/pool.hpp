#pragma once

// Connections to redis that requests share: at most so many, each used by one fiber at a time.

#include "../redis/connection.hpp"

#include <ulexite/net/endpoint.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace redis_counter {

class pool {
 public:
  // Connects when the first one is needed. `patience`: how long connecting, or a reply, may take at most.
  pool(ulexite::net::endpoint redis, std::size_t size, std::chrono::nanoseconds patience);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // A connection for the time being. It is closed at the end, for who knows what replies are still under way on it: an
  // exception, a time limit that ran out. Only one that was handed back goes to the next.
  class lease {
   public:
    explicit lease(pool& from);  // see acquire
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease();

    redis::connection* operator->() noexcept { return connection_.get(); }
    // All replies have been received: another may use it.
    void hand_back();

   private:
    pool& from_;
    std::unique_ptr<redis::connection> connection_;
  };

  // Waits until one of the connections is free, and connects if none is open: again and again, with growing pauses
  // between, until it succeeds. So call it in a deadline_scope. A cancellation point.
  [[nodiscard]] lease acquire() { return lease(*this); }

  // Why nobody gets a connection.
  [[nodiscard]] std::string trouble() const;
  // How many connections were made until now.
  [[nodiscard]] std::uint64_t connects() const;

 private:
  using clock = ulexite::steady_clock;

  std::unique_ptr<redis::connection> take();
  std::unique_ptr<redis::connection> take_idle();
  std::unique_ptr<redis::connection> connect();
  void note_success();
  void note_failure(const char* why);

  const ulexite::net::endpoint redis_;
  const std::chrono::nanoseconds patience_;
  ulexite::counting_semaphore<> free_;        // leases to be had
  ulexite::binary_semaphore may_connect_{1};  // one at a time: while redis is down, pauses are not multiplied
  clock::time_point next_attempt_{};          // whoever may connect owns these two
  std::chrono::milliseconds pause_{0};
  mutable ulexite::mutex guard_;  // of the rest
  std::vector<std::unique_ptr<redis::connection>> idle_;
  std::string failure_;  // of the last attempt to connect; empty if that succeeded
  std::uint64_t connects_ = 0;
};

}  // namespace redis_counter
