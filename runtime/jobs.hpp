#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>

namespace ulexite {

class runtime;

// A batch of jobs, in order, with one publication and one wake. A job may be in one list at a time, and once. Not
// synchronised. May be constinit, as jobs may.
class job_list {
 public:
  // Throws usage_error for a job without a function.
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

// Makes jobs runnable in the calling worker's runtime: they start in this order, unless others steal some
// or there are more than 1,024. Allocates
// nothing, never waits. Throws errc::no_runtime outside one (see runtime::schedule), usage_error for a job without a
// function. A runtime that is shut down in mode stop drops those it has not begun; in the other modes all of them run.
void schedule(job& job);
void schedule(job_list&& jobs);

// Makes a fiber of the job that calls it: from here on it may wait, as any fiber, and it ends when the job's `run`
// returns. As a fiber it is cancelled, at the latest when the runtime ends: `run` must catch operation_cancelled. Does
// nothing in a fiber or a stop callback. Locks that the job holds are not the fiber's: it must have none of this
// library. Throws usage_error on a plain thread and within a deadline_scope or a shield, errc::limit_reached above
// max_fibers, std::bad_alloc: then the job is what it was.
void become_fiber();

}  // namespace ulexite
