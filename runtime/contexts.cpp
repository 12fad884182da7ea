#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/parallel_context.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/threads/cpus.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/strand.hpp>

#include <algorithm>
#include <string>
#include <thread>

#include <pthread.h>

namespace ulexite {
namespace detail {
namespace {

// The strand that the calling fiber is a member of, or null.
const strand* strand_of_caller() noexcept {
  const task* const self = this_task();
  const rare_task_state* const rare = self ? self->rare_state_if_made() : nullptr;
  return rare ? rare->member_of : nullptr;
}

// Checks that the calling fiber may migrate to a context of `rt`, and returns its worker.
scheduler& migrating_in(const runtime_state& rt) {
  scheduler* const here = this_scheduler();
  if (!here || this_agent().kind != agent_kind::fiber)
    throw usage_error("this_fiber::migrate_to was called outside of a fiber, or where a wait is not allowed");
  if (&here->runtime() != &rt)
    throw usage_error("this_fiber::migrate_to: the context is of another runtime; run_in calls a function there");
  return *here;
}

// Names threads after the context and the worker, for top -H and debuggers. The system keeps 15 characters.
std::function<void(std::size_t)> name_threads(std::string name) {
  return [name = std::move(name)](std::size_t worker) {
    const std::string number = "/" + std::to_string(worker);
    ::pthread_setname_np(::pthread_self(),
                         (name.substr(0, 15 - std::min<std::size_t>(number.size(), 15)) + number).c_str());
  };
}

}  // namespace

void enter_strand(task& fresh, strand& into) {
  try {
    into.add_member(fresh);
  } catch (...) {
    fresh.detach_at_birth();
    fresh.abandon();
    throw;
  }
}

runtime_state& runtime_of(const strand& strand) noexcept { return strand.runtime(); }

}  // namespace detail

// ---- concurrent_context ----

concurrent_context::concurrent_context(std::string_view name)
    : strand_(*new detail::strand(detail::this_runtime_state(), std::string(name))) {}

concurrent_context::concurrent_context(runtime& over, std::string_view name)
    : strand_(*new detail::strand(detail::state_of(over), std::string(name))) {}

concurrent_context::~concurrent_context() {
  strand_.request_stop();
  if (detail::strand_of_caller() == &strand_) {
    detail::warn("~concurrent_context was called by one of its own fibers: they run on");
  } else if (!strand_.wait_until_empty()) {
    detail::panic("~concurrent_context was called while another caller waits for its end");
  }
  strand_.release();
}

detail::strand& concurrent_context::strand_for_spawn() {
  detail::runtime_state& rt = strand_.runtime();
  rt.threads.ensure_worker();
  return strand_;
}

void concurrent_context::request_stop() noexcept { strand_.request_stop(); }

void concurrent_context::check_may_be_waited_for() const {
  if (detail::strand_of_caller() == &strand_)
    throw usage_error("concurrent_context::wait was called by one of its own fibers, and would wait for itself");
  detail::check_may_wait(detail::this_agent(), detail::wait_kind::context);
  if (strand_.is_waited_for()) throw usage_error("concurrent_context::wait: another caller waits already");
}

void concurrent_context::wait() {
  check_may_be_waited_for();
  while (!strand_.wait_until_empty()) check_may_be_waited_for();  // another caller has begun to wait meanwhile
}

std::string_view concurrent_context::name() const noexcept { return strand_.name(); }

// From now on the fiber's tokens follow the requests to stop of its new context.
void this_fiber::migrate_to(concurrent_context& context) {
  detail::strand& into = detail::context_access::strand_of(context);
  detail::scheduler& here = detail::migrating_in(into.runtime());
  detail::task& self = *here.running();
  detail::rare_task_state& rare = self.rare_state();
  if (rare.member_of == &into) return;
  detail::strand* const former = self.change_strand(nullptr);
  rare.strand_stop.reset();  // without the lock, because it waits for a call that is under way
  if (former) former->remove_member(rare);
  into.add_member(self);
  if (const std::stop_source own = self.stop_source(); own.stop_possible())
    rare.strand_stop.emplace(into.stop_token(), detail::rare_task_state::relay{own});
  here.rebind();
}

void this_fiber::migrate_to(runtime& runtime) {
  detail::scheduler& here = detail::migrating_in(detail::state_of(runtime));
  detail::rare_task_state* const rare = here.running()->rare_state_if_made();
  if (!rare || !rare->member_of) return;
  detail::strand* const former = here.running()->change_strand(nullptr);
  rare->strand_stop.reset();
  former->remove_member(*rare);
  here.rebind();
}

// ---- parallel_context ----

parallel_context::parallel_context(std::string_view name, std::size_t threads, std::size_t max_threads)
    : name_(name),
      runtime_({.threads = threads,
                .max_threads = max_threads != 0
                                   ? max_threads
                                   : std::max(threads, std::min<std::size_t>(std::thread::hardware_concurrency(),
                                                                             detail::most_processors)),
                .on_thread_start = detail::name_threads(name_)}) {}

parallel_context::~parallel_context() {
  if (detail::is_on_thread_within(detail::state_of(runtime_))) return;  // ~runtime reports it
  if (!runtime_.ended()) block_in_place([this] { runtime_.shutdown(shutdown_mode::cancel); });
}

}  // namespace ulexite
