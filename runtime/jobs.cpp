#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/jobs.hpp>

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

}  // namespace ulexite
