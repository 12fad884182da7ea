#pragma once

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ulexite::detail {

class broadcast_case;

// The state that a broadcast or a watch shares with its receivers: the last values, and the receivers that wait for the
// next.
class broadcast_core {
 public:
  using value = std::shared_ptr<const void>;

  // A receiver's position.
  struct reader {
    std::uint64_t next = 0;    // the number of the value that it reads next
    std::uint64_t missed = 0;  // values that were replaced before it read them
  };

  static constexpr std::int64_t never_wait = -1;

  // Makes a core for `capacity` values. Throws usage_error for a capacity of 0, std::bad_alloc.
  explicit broadcast_core(std::size_t capacity);

  // Adds a value; it replaces the oldest if there is no room. False if the core is closed.
  bool put(value next) noexcept;
  bool close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept;

  // Makes a reader that begins with the next value.
  [[nodiscard]] reader subscribe() const noexcept;
  // Reads the next value. Waits until there is one, at most until `deadline`. A cancellation point.
  channel_status read(reader& who, value& into, std::int64_t deadline);
  // Returns the last value, which must exist. Never waits. It counts as read by `who`.
  [[nodiscard]] value last(reader* who = nullptr) const noexcept;
  // Whether there is a value that `who` has not read.
  [[nodiscard]] bool has_next(const reader& who) const noexcept;

 private:
  friend broadcast_case;

  // With guard_ held.
  channel_status read_now(reader& who, value& into) noexcept;

  mutable spin_lock guard_;  // guards the rest
  bool closed_ = false;      // readers get the values that they have not read, then the end
  std::uint64_t end_ = 0;    // the number of the next value
  std::vector<value> ring_;  // number i is at i % size
  wait_queue queue_;
};

}  // namespace ulexite::detail
