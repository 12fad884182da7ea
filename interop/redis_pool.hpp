#pragma once

// Connections to redis that fibers share. Included by redis.hpp.

#include <ulexite/interop/redis_connection.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ulexite::redis {

namespace detail {

// The pauses between attempts to connect: each twice as long as the one before.
class back_off {
 public:
  // Waits for the rest of the pause. A cancellation point.
  void wait() const {
    if (failed()) this_fiber::sleep_until(next_);
  }
  // Whether the last attempt failed.
  [[nodiscard]] bool failed() const noexcept { return pause_ != pause_.zero(); }
  void note_success() noexcept { pause_ = pause_.zero(); }
  void note_failure() noexcept {
    pause_ = std::clamp(pause_ * 2, std::chrono::milliseconds(20), std::chrono::milliseconds(500));
    next_ = steady_clock::now() + pause_;
  }

 private:
  std::chrono::milliseconds pause_{0};
  steady_clock::time_point next_{};
};

}  // namespace detail

// How a pool works.
struct pool_options {
  std::size_t size = 8;                                              // the most connections
  std::chrono::nanoseconds acquire_time = std::chrono::seconds(10);  // the longest wait for a connection
  connection_options connection{};                                   // of each
  // Called when an attempt to connect fails after one that succeeded, with the reason; and with "" when one succeeds
  // again. Must not wait.
  std::function<void(std::string_view why)> on_change{};
};

// Connections that are made when they are needed, up to a limit. Any number of fibers may use it. Functions that wait
// are cancellation points. They throw connection_lost, late or stopped (see unanswered::sent), and server_error. Its
// leases must have ended before it does.
class pool {
 public:
  // Waits for nothing: the first command connects. Throws usage_error for a size of 0.
  explicit pool(net::address to, pool_options options = {})
      : to_(std::move(to)), options_(std::move(options)), free_(static_cast<std::ptrdiff_t>(options_.size)) {
    if (options_.size == 0) throw usage_error("ulexite: redis::pool: a pool of 0 connections");
  }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // Sends a command on a free connection, and waits for the reply. A fiber that is stopped or late leaves at once, and
  // its connection is closed. A command that could not be sent is sent on another one. One that was sent is never
  // repeated: see redis::repeat.
  template <class... Words>
    requires(std::constructible_from<argument, const Words&> && ...)
  reply command(const Words&... words) {
    return command(std::array<argument, sizeof...(Words)>{argument(words)...});
  }
  reply command(std::span<const argument> words) {
    for (int attempt = 1;; ++attempt) {
      lease with = acquire();
      try {
        with->send(words);
        reply got = with->receive();
        with.hand_back();
        got.check();
        return got;
      } catch (const connection_lost& why) {
        if (why.sent() || attempt == most_attempts) throw;
      }
    }
  }

  // A borrowed connection, for pipelines and transactions. Its end closes the connection, unless it was handed back.
  class lease {
   public:
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() {
      connection_.reset();
      from_.free_.release();
    }

    // The connection. Not after hand_back.
    connection* operator->() noexcept { return connection_.get(); }
    connection& operator*() noexcept { return *connection_; }
    // Lets others use the connection. Call it when it is as it was: all replies were received, it is in no transaction
    // and has no subscription. Throws usage_error if a reply is missing. Never waits.
    void hand_back() {
      if (connection_->unread() != 0)
        throw usage_error("ulexite: redis::pool: a connection was handed back, and replies to " +
                          std::to_string(connection_->unread()) + " commands were not received");
      const std::lock_guard lock(from_.guard_);
      from_.idle_.push_back(std::move(connection_));
    }

   private:
    friend pool;
    explicit lease(pool& from) : from_(from), connection_(from.take_within_limit()) {}

    pool& from_;
    std::unique_ptr<connection> connection_;
  };
  // Waits until a connection is free, and connects if none is open. Repeats this, with growing pauses, until it
  // succeeds or the options' acquire_time is over.
  [[nodiscard]] lease acquire() { return lease(*this); }

  // The reason why no connection can be had. Never waits.
  [[nodiscard]] std::string trouble() const {
    const std::lock_guard lock(guard_);
    return failure_.empty() ? "no connection to redis became free" : "redis cannot be reached: " + failure_;
  }
  // The number of connections made so far. Never waits.
  [[nodiscard]] std::uint64_t connects() const {
    const std::lock_guard lock(guard_);
    return connects_;
  }

 private:
  static constexpr int most_attempts = 3;  // to send a command: each fails only if redis ends the connection just then

  // A permit that this fiber holds as long as the object exists.
  struct permit {
    explicit permit(binary_semaphore& semaphore) : from(semaphore) { from.acquire(); }
    permit(const permit&) = delete;
    permit& operator=(const permit&) = delete;
    ~permit() { from.release(); }
    binary_semaphore& from;
  };

  // For a lease, which gives the permit of free_ back. Nothing was sent yet.
  std::unique_ptr<connection> take_within_limit() {
    try {
      auto taken = try_for(options_.acquire_time, [&] {
        free_.acquire();
        try {
          return take();
        } catch (...) {
          free_.release();
          throw;
        }
      });
      if (taken) return std::move(*taken);
    } catch (const deadline_exceeded&) {
      throw late(false);
    } catch (const operation_cancelled&) {
      throw stopped(false);
    }
    throw connection_lost(std::make_error_code(std::errc::timed_out), "ulexite: " + trouble(), false);
  }
  std::unique_ptr<connection> take() {
    if (auto idle = take_idle()) return idle;
    const permit connecting(may_connect_);
    if (auto idle = take_idle()) return idle;
    return connect();
  }
  // The connection that was used last. A restarted redis has ended the idle ones, and a command would be lost on them.
  std::unique_ptr<connection> take_idle() {
    this_fiber::check();  // a fiber that is late already takes none
    for (;;) {
      std::unique_ptr<connection> last;
      {
        const std::lock_guard lock(guard_);
        if (idle_.empty()) return nullptr;
        last = std::move(idle_.back());
        idle_.pop_back();
      }
      if (last->usable()) return last;
    }
  }
  // Called with may_connect_ held.
  std::unique_ptr<connection> connect() {
    for (;;) {
      pauses_.wait();
      try {
        auto made = std::make_unique<connection>(to_, options_.connection);
        note_success();
        return made;
      } catch (const connection_lost& why) {
        note_failure(why.what());
      } catch (const std::system_error&) {  // the fiber is stopped or late
        throw;
      } catch (const reply_error& why) {  // it will not go by itself
        note_failure(why.what());
        throw;
      }
    }
  }
  void note_success() {
    if (pauses_.failed() && options_.on_change) options_.on_change({});
    pauses_.note_success();
    const std::lock_guard lock(guard_);
    ++connects_;
    failure_.clear();
  }
  void note_failure(const char* why) {
    if (!pauses_.failed() && options_.on_change) options_.on_change(why);
    pauses_.note_failure();
    const std::lock_guard lock(guard_);
    failure_ = why;
  }

  const net::address to_;
  const pool_options options_;
  counting_semaphore<> free_;        // leases to be had
  binary_semaphore may_connect_{1};  // one at a time: while redis is down, pauses are not multiplied
  detail::back_off pauses_;          // owned by the holder of may_connect_
  mutable mutex guard_;              // of the rest
  std::vector<std::unique_ptr<connection>> idle_;
  std::string failure_;  // of the last attempt to connect; empty if that succeeded
  std::uint64_t connects_ = 0;
};

// Calls `function` until it returns, and returns what it returns: after connection_lost, and after a server_error that
// may_succeed_later(), it calls it again, with growing pauses. For commands that may be carried out twice, such as GET,
// SET, XACK. Use a deadline_scope. A cancellation point.
template <class F>
decltype(auto) repeat(F&& function) {
  for (detail::back_off pauses;; pauses.note_failure(), pauses.wait()) {
    try {
      return function();
    } catch (const connection_lost&) {
    } catch (const server_error& why) {
      if (!why.may_succeed_later()) throw;
    }
  }
}

}  // namespace ulexite::redis
