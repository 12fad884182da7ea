#pragma once

#include <ulexite.hpp>

#include <exception>
#include <utility>
#include <vector>

namespace tour {

// Fibers that end before the variables that they use. Declare a team after those variables: then it waits for its
// fibers, even after an exception.
class team {
 public:
  team() = default;
  team(const team&) = delete;
  team& operator=(const team&) = delete;
  // After a failure: asks the waiting fibers to stop, and ignores their exceptions.
  ~team() {
    for (auto& fiber : fibers_) fiber.request_stop();
    try {
      wait();
    } catch (...) {
    }
  }

  template <class F>
  void spawn(F&& function) {
    fibers_.push_back(ulexite::spawn(std::forward<F>(function)));
  }

  // Waits for all, then rethrows the first exception, in the order in which they were spawned.
  void wait() {
    std::exception_ptr first;
    for (auto& fiber : std::exchange(fibers_, {})) {
      try {
        fiber.get();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  }

 private:
  std::vector<ulexite::join_handle<>> fibers_;
};

}  // namespace tour
