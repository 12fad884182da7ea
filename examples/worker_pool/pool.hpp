#pragma once

#include "../stop_signals.hpp"

#include <ulexite.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct pool_options {
  std::vector<std::string> files;  // none: read the names from standard input, one a line
  std::string output = ".";
  std::size_t workers = 4;
  unsigned attempts = 3;
  std::chrono::milliseconds retry_delay{100};
};

struct pool_summary {
  std::uint64_t done = 0, failed = 0, cancelled = 0, not_begun = 0;  // jobs
  std::uint64_t retries = 0;
  std::uint64_t read = 0, written = 0;  // bytes, of the jobs done
};

// Workers that take jobs from one channel and send the results to another, and a coordinator between the two.
class pool {
 public:
  explicit pool(const pool_options& given) : given_(given) {}

  // Runs until all jobs are done or have finally failed. After the first signal it begins no further job, and finishes
  // the jobs under way. The second signal cancels these too.
  pool_summary run(examples::stop_signals& signals);

 private:
  struct job {
    std::string path;
    unsigned attempts = 0;
    std::string error{};  // of the last attempt, empty if that was successful
    std::uint64_t read = 0, written = 0;
  };

  void read_names();
  void work();
  void attempt(job& mine) const;
  void coordinate(ulexite::task_group& group, ulexite::channel<int>& stops);
  void accept(std::optional<job> came);
  void finish(ulexite::task_group& group, job ended);
  void stop(int signal);
  void count_what_is_left();

  const pool_options& given_;
  // None has a buffer, so a fiber always holds each job, and reading names waits for the workers.
  ulexite::channel<job> submitted_, again_, to_do_, done_;

  // Of the coordinator.
  enum class phase { running, draining, cancelled } phase_ = phase::running;
  job next_;               // for the worker that is free first,
  bool has_next_ = false;  // if there is one
  bool more_ = true;       // may arrive through submitted_
  std::size_t accepted_ = 0, under_way_ = 0, waiting_for_retry_ = 0;
  pool_summary summary_;
};
