#pragma once

// The worker of a deterministic run (base/controller.hpp): the only one of its runtime, on the thread that calls.
//
// No fiber finds a next one by itself: by request::controlled each switch goes to the main stack, which asks the
// controller. The fibers' budgets are 1, so that every operation asks too. No worker is woken, because for the
// parker this worker is a searcher.

#include <ulexite/base/controller.hpp>
#include <ulexite/base/job.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ulexite::detail {

class scheduler;

class controlled_run {
 public:
  controlled_run(scheduler& worker, controller& by) noexcept : worker_(worker), controller_(by) {}
  controlled_run(const controlled_run&) = delete;
  controlled_run& operator=(const controlled_run&) = delete;

  // The next to run, or null when nothing can run.
  job* next() noexcept;
  // The running fiber has done something: true if it must let another go first, which is then the next.
  [[nodiscard]] bool another_goes_first() noexcept;
  // The fiber that has left its stack has only let others go first.
  void on_yield(std::uint64_t fiber) noexcept {
    if (!picked_) controller_.yielded(fiber);
  }
  std::uint64_t next_id() noexcept { return ++controller_.fibers; }

 private:
  void gather() noexcept;
  [[nodiscard]] std::int64_t next_event() const noexcept;
  bool let_time_pass() noexcept;
  std::size_t ask(controller::moment moment) noexcept;
  job* take(std::size_t which) noexcept;

  scheduler& worker_;
  controller& controller_;
  std::vector<job*> runnable_;  // in the order in which they became so
  std::vector<std::uint64_t> candidates_;
  job* picked_ = nullptr;  // picked at an operation of another fiber, to continue now
};

}  // namespace ulexite::detail
