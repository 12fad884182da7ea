#pragma once

// The runtime that runs happen in, one after the other, as long as each leaves nothing behind.

#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/testing/driver.hpp>
#include <ulexite/testing/explore.hpp>

#include <functional>
#include <optional>
#include <string>

namespace ulexite::testing {

// What a run has come to.
struct outcome {
  std::string reason;  // empty: it did not fail
  std::string fibers;  // if it failed: those that live, and what each waits for
};

class world {
 public:
  explicit world(const explore_options& options) noexcept : options_(options), driver_(options) {}
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world() { end(); }

  // One run.
  outcome run(strategy& how, const std::function<void()>& body);
  // The last run.
  [[nodiscard]] const driver& last() const noexcept { return driver_; }

 private:
  void begin();
  void end() noexcept;
  void judge();
  [[nodiscard]] std::string describe_fibers();

  const explore_options& options_;
  driver driver_;
  std::optional<detail::runtime_state> home_;
};

}  // namespace ulexite::testing
