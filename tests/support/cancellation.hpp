#pragma once

// Shared by the tests of cancellation.

#include <ulexite/runtime/options.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ulexite::test {

// Returns only by an exception.
[[noreturn]] inline void wait_for_ever() {
  for (;;) this_fiber::sleep_for(std::chrono::hours(1));
}

// The message of the Error that `function` throws. Another exception passes.
template <class Error = std::exception, class F>
std::string message_of(F&& function) {
  try {
    function();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

// Counts itself as long as it lives.
class counted {
 public:
  explicit counted(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~counted() {
    this_fiber::yield();  // a destructor takes its time
    --alive_;
  }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;

 private:
  std::atomic<int>& alive_;
};

// Functions that wait for ever, and are counted in `alive` until they have ended; the second also counts its
// beginnings.
inline auto waits(std::atomic<int>& alive) {
  return [&alive] {
    const counted here(alive);
    wait_for_ever();
  };
}
inline auto waits(std::atomic<int>& alive, std::atomic<int>& begun) {
  return [&alive, &begun] {
    const counted here(alive);
    ++begun;
    wait_for_ever();
  };
}

// The names of the fibers with an exception that was not taken.
class unhandled_log {
 public:
  [[nodiscard]] runtime_options options(std::size_t threads) {
    runtime_options with;
    with.threads = threads;
    with.on_unhandled_exception = [this](const unhandled_exception& what) {
      const std::lock_guard lock(guard_);
      names_.emplace_back(what.fiber_name);
    };
    return with;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    const std::lock_guard lock(guard_);
    return names_;
  }

 private:
  mutable std::mutex guard_;
  std::vector<std::string> names_;
};

}  // namespace ulexite::test
