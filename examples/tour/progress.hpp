#pragma once

#include <ulexite.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tour {

// Shows the progress of a part on stderr while it exists. On a terminal a fiber of the runtime rewrites a line ten
// times a second; otherwise there is one plain line at the start.
class progress {
 public:
  // `total` 0: unknown. The texts must outlive it.
  progress(ulexite::runtime& runtime, const char* title, const char* unit, std::uint64_t total = 0);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  // Counts on. Any fiber or thread.
  void add(std::uint64_t count = 1) noexcept { count_.fetch_add(count, std::memory_order_relaxed); }  // a statistic
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  // Counts something else from zero.
  void restart(const char* unit, std::uint64_t total = 0) noexcept;

 private:
  void show() const;

  const char* const title_;
  const ulexite::steady_clock::time_point begin_ = ulexite::steady_clock::now();
  std::atomic<const char*> unit_;
  std::atomic<std::uint64_t> total_;
  std::atomic<std::uint64_t> count_{0};
  ulexite::join_handle<> ticker_;
};

// Seconds since it was made.
class stopwatch {
 public:
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(ulexite::steady_clock::now() - begin_).count();
  }

 private:
  ulexite::steady_clock::time_point begin_ = ulexite::steady_clock::now();
};

}  // namespace tour
