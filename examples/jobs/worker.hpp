#pragma once

// A worker process: takes jobs from the queue as it has room, does each in a fiber, and takes over those of processes
// that died.

#include "ledger.hpp"
#include "queue.hpp"

#include <ulexite/runtime/join_handle.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <set>
#include <string>
#include <vector>

namespace jobs {

// What the worker has done. Of the jobs that were done, `repeated` had been done before, and had no second effect.
struct counters {
  std::atomic<long> done{0}, repeated{0}, failed{0}, dead{0}, claimed{0}, given_back{0}, in_flight{0};
};

struct worker_options {
  std::ptrdiff_t concurrency = 16;        // the most jobs at a time
  std::chrono::milliseconds grace{5000};  // how long jobs under way have after a stop
};

class worker {
 public:
  // Without a `book` the ledger is in redis. Both must live as long.
  worker(queue& from, ledger* book, worker_options options);

  // Makes what it needs in redis and in the ledger. Waits while these are away. A cancellation point. Throws their
  // errors.
  void start();
  // Works until await_stop() returns, in the caller's fiber. Then it takes no further jobs, waits for those under way
  // as long as the options say, gives the rest back, and removes its consumer; if redis is away, it does without after
  // five further seconds. Returns whether nothing stayed pending at it. Errors go to stderr. A cancellation point.
  bool run(const std::function<void()>& await_stop);

  [[nodiscard]] const counters& counts() const noexcept { return counts_; }

 private:
  class place;  // of a job under way

  void read();
  bool claim(std::ptrdiff_t& room);  // returns whether it took any
  void run_alone();
  ulexite::join_handle<> begin(job what);  // none if it is under way already
  void handle(const job& what);
  void work(const job& what);
  void give_up(const job& what, const std::string& why);
  bool leave(const std::vector<std::string>& unfinished);
  std::vector<std::string> under_way();

  queue& queue_;
  ledger* const ledger_;
  const worker_options options_;
  ulexite::counting_semaphore<> room_;  // for jobs
  ulexite::task_group* handlers_ = nullptr;
  std::atomic<bool> working_{false};
  ulexite::mutex guard_;
  std::set<std::string> under_way_;  // entries; guarded by guard_
  std::string suspect_;              // of the reader: an entry that is to run alone
  counters counts_;
};

// Writes the queue's and the worker's metrics in the text format of Prometheus.
void write_metrics(std::ostream& out, const queue_state& now, const counters& counts);

}  // namespace jobs
