#pragma once

// Which reads or writes of a file may run on a worker.

#include <ulexite/base/standard.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

enum class access : bool { read, write };

// What is known about the reads or the writes of one file. Any thread.
class nowait_support {
 public:
  enum answer : std::uint8_t {
    unasked,        // no call was made yet
    opened,         // nor here, but the library has opened the file, so it has none of O_DIRECT and O_DSYNC
    nowait,         // the file system takes calls that must not wait, by RWF_NOWAIT; or it was not asked yet
    unknown,        // it knows no RWF_NOWAIT; the pool finds out more
    refused,        // each call may wait
    rarely_blocks,  // a call waits seldom, because it writes to memory
    never_blocks,   // no call waits, because it keeps its files in memory
  };

  constexpr explicit nowait_support(access how) noexcept : how_(how) {}
  nowait_support(const nowait_support& other) noexcept : how_(other.how_), answer_(other.known()) {}
  nowait_support& operator=(const nowait_support& other) noexcept {
    learn(other.known());
    return *this;
  }

  [[nodiscard]] access how() const noexcept { return how_; }
  [[nodiscard]] answer known() const noexcept { return answer_.load(std::memory_order_relaxed); }  // hint
  void learn(answer found) noexcept { answer_.store(found, std::memory_order_relaxed); }           // hint
  // The first answer, instead of `unasked` or `opened`. Never waits.
  void ask(int fd) noexcept;
  // An answer instead of `unknown`. The file system may be that of another machine or process, so this is for the pool.
  void find_out(int fd) noexcept;

 private:
  const access how_;
  std::atomic<answer> answer_{unasked};  // State: the last answer. A hint, written by any thread.
};

}  // namespace ulexite::detail
