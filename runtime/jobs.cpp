#include <ulexite/base/error.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <utility>

namespace ulexite {
namespace {

detail::scheduler& here() {
  detail::scheduler* const here = detail::this_scheduler();
  if (!here) throw std::system_error(make_error_code(errc::no_runtime), "ulexite::schedule");
  return *here;
}

void check(const job& job) {
  if (!job.run) throw usage_error("ulexite::schedule of a job without a function");
}

}  // namespace

void schedule(job& job) {
  check(job);
  here().add_job(job);
}

void schedule(job_list&& jobs) { here().add_jobs(jobs.jobs_); }

void runtime::schedule(job& job) {
  check(job);
  for_others("schedule").inject(job);
}

void runtime::schedule(job_list&& jobs) { for_others("schedule").inject(jobs.jobs_); }

void become_fiber() {
  if (in_fiber()) return;
  detail::scheduler* const here = detail::this_scheduler();
  if (!here || here->running()) throw usage_error("ulexite::become_fiber outside a job");
  here->make_fiber_of_job();
}

}  // namespace ulexite
