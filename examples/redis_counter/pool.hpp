#pragma once

// Connections to redis that requests share, up to a limit. One fiber at a time uses a connection.

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
  // Connects when the first one is needed. `patience` is the time limit of a connect, and of a reply.
  pool(ulexite::net::endpoint redis, std::size_t size, std::chrono::nanoseconds patience);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // A borrowed connection. The destructor closes it, because replies may still be under way after an exception or a
  // time-out. Only a connection that was handed back is used again.
  class lease {
   public:
    explicit lease(pool& from);  // see acquire
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease();

    redis::connection* operator->() noexcept { return connection_.get(); }
    // Call it when all replies have been received: another fiber may then use the connection.
    void hand_back();

   private:
    pool& from_;
    std::unique_ptr<redis::connection> connection_;
  };

  // Waits until a connection is free, and connects if none is open. Repeats this, with growing pauses, until it
  // succeeds. So call it in a deadline_scope. A cancellation point.
  [[nodiscard]] lease acquire() { return lease(*this); }

  // The reason why no connection is available.
  [[nodiscard]] std::string trouble() const;
  // The number of connections made so far.
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
  clock::time_point next_attempt_{};          // owned by the holder of may_connect_, like the next member
  std::chrono::milliseconds pause_{0};
  mutable ulexite::mutex guard_;  // of the rest
  std::vector<std::unique_ptr<redis::connection>> idle_;
  std::string failure_;  // of the last attempt to connect; empty if that succeeded
  std::uint64_t connects_ = 0;
};

}  // namespace redis_counter
