#pragma once

#include <ulexite/runtime/runtime.hpp>

#include <thread>
#include <type_traits>
#include <vector>

namespace ulexite::test {

// Fibers and plain threads that do the same at the same time.
class crowd {
 public:
  explicit crowd(runtime& rt) : rt_(rt) {}
  crowd(runtime& rt, int fibers, int threads, auto& function) : rt_(rt) { add(fibers, threads, function); }

  // Starts so many fibers and threads that call `function`: with their number from 0, the fibers' first, if it takes
  // one. `function` must live until join().
  void add(int fibers, int threads, auto& function) {
    for (int i = 0; i < fibers + threads; ++i)
      if constexpr (std::is_invocable_v<decltype(function), int>) {
        start(i < fibers, [&function, i] { function(i); });
      } else {
        start(i < fibers, [&function] { function(); });
      }
  }

  // Waits for all. Throws what a fiber threw.
  void join() {
    for (auto& each : fibers_) each.get();
    for (auto& each : threads_) each.join();
  }

 private:
  void start(bool as_fiber, auto call) {
    if (as_fiber) {
      fibers_.push_back(rt_.spawn(call));
    } else {
      threads_.emplace_back(call);
    }
  }

  runtime& rt_;
  std::vector<join_handle<>> fibers_;
  std::vector<std::jthread> threads_;
};

}  // namespace ulexite::test
