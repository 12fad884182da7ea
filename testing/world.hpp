#pragma once

// The runtime of the runs. One run follows another in it, as long as each leaves nothing behind.

#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/testing/driver.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/watchdog.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ulexite::testing {

// The outcome of a run.
struct outcome {
  std::string reason;  // empty: it did not fail
  std::string fibers;  // if it failed: the live fibers and their waits
};

class world {
 public:
  explicit world(const explore_options& options) noexcept : options_(options), driver_(options) {}
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world() { end(); }

  // Makes one run.
  outcome run(strategy& how, const std::function<void()>& body);
  // The driver of the last run.
  [[nodiscard]] const driver& last() const noexcept { return driver_; }

 private:
  void begin();
  void end() noexcept;
  void judge();
  [[nodiscard]] std::string describe_fibers();
  [[nodiscard]] detail::runtime_state& rt() const noexcept { return detail::state_of(*runtime_); }

  const explore_options& options_;
  driver driver_;
  std::unique_ptr<runtime> runtime_;
  std::optional<watchdog> watchdog_;  // of runtime_
};

}  // namespace ulexite::testing
