#include <ulexite/base/error.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

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

void schedule(job_list&& jobs) { here().add(jobs.jobs_); }

void runtime::schedule(job& job) {
  check(job);
  state_for_outside_call("schedule").inject(job);
}

void runtime::schedule(job_list&& jobs) { state_for_outside_call("schedule").inject(jobs.jobs_); }

void become_fiber() {
  const detail::agent& self = detail::this_agent();
  if (in_fiber() || self.calls_back) return;
  detail::scheduler* const here = detail::this_scheduler();
  if (!here) throw usage_error("ulexite::become_fiber outside a job");
  // The end of such a scope would change the worker's agent, which the new fiber and the next jobs do not expect.
  if (self.deadline != detail::no_deadline || self.shielded)
    throw usage_error("ulexite::become_fiber within a deadline_scope or a shield");
  if (self.held_locks != 0) throw usage_error("ulexite::become_fiber while the job holds a lock");
  here->make_fiber_of_job();
}

}  // namespace ulexite
