#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>

#include <utility>

namespace ulexite {

class runtime;

// An ordered batch of jobs, which one publication makes runnable, with one wake. A job may be in one list at a time,
// and once. Not synchronised. May be constinit, as jobs may.
class job_list {
 public:
  constexpr job_list() = default;
  // The other list is then empty. The jobs of a list that is assigned to are dropped.
  job_list(job_list&& other) noexcept : jobs_(std::exchange(other.jobs_, {})) {}
  job_list& operator=(job_list&& other) noexcept {
    jobs_ = std::exchange(other.jobs_, {});
    return *this;
  }
  job_list(const job_list&) = delete;
  job_list& operator=(const job_list&) = delete;
  // Appends a job. Throws usage_error for a job without a function.
  void push(job& job) {
    if (!job.run) throw usage_error("ulexite::job_list::push of a job without a function");
    jobs_.push(job);
  }
  // Whether the list has no job.
  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  // The number of jobs in the list.
  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }

 private:
  friend void schedule(job_list&& jobs);
  friend class runtime;
  detail::intrusive_queue<job> jobs_;
};

// Makes jobs runnable in the calling worker's runtime. They start in this order, unless other workers steal some or
// more than 1,024 jobs and fibers wait there. Allocates nothing. Never waits. Throws errc::no_runtime outside a runtime
// (see runtime::schedule), usage_error for a job without a function. shutdown_mode::abandon drops jobs that have not
// begun; in the other modes all of them run.
void schedule(job& job);
void schedule(job_list&& jobs);

// Turns the calling job into a fiber. From then on it may wait, and it ends when the job's `run` returns. It may be
// cancelled, at the latest when the runtime ends, so `run` must catch operation_cancelled. Does nothing in a fiber or a
// stop callback. The job must hold no lock of this library, because the fiber would not be the holder. Throws
// usage_error on a plain thread and within a deadline_scope or a shield, errc::limit_reached above max_fibers,
// std::bad_alloc. If it throws, the job stays a job.
void become_fiber();

}  // namespace ulexite
