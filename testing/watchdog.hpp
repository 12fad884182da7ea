#pragma once

// A thread that reports a run in which nothing happens any more.

#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/testing/driver.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace ulexite::testing {

// Watches the runs of a runtime on the calling thread. After `limit` without a step stderr shows the present calls,
// the fibers, and the line that repeats the run: once for each time that a run stands still.
class watchdog {
 public:
  watchdog(driver& of, detail::runtime_state& rt, std::chrono::milliseconds limit);
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

 private:
  void watch();
  void tell() const;

  driver& driver_;
  detail::runtime_state& runtime_;
  const std::chrono::milliseconds limit_;
  const int watched_;  // thread
  std::mutex mutex_;   // guards over_
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace ulexite::testing
