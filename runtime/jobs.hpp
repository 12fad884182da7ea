#pragma once

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>

namespace ulexite {

// A batch of jobs, in order: one publication, one wake. Not synchronised.
class job_list {
 public:
  void push(job& job) noexcept { jobs_.push(job); }
  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }

 private:
  friend void schedule(job_list&& jobs);
  detail::intrusive_queue<job> jobs_;
};

// Makes jobs runnable in the calling worker's runtime: in this order, unless others steal some. Allocates nothing,
// never waits. Throws errc::no_runtime outside one. A runtime that is shut down in mode stop drops those it has not
// begun; in the other modes all of them run.
void schedule(job& job);
void schedule(job_list&& jobs);

}  // namespace ulexite
