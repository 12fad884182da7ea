#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/inspect/deadlock.hpp>
#include <ulexite/runtime/inspect/plain_stream.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/signal_dump.hpp>
#include <ulexite/runtime/inspect/stuck.hpp>
#include <ulexite/runtime/inspect/trace.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/trace/probes.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite {

using detail::scheduler;
using detail::this_scheduler;

runtime::runtime(std::unique_ptr<detail::runtime_state> bare) noexcept : state_(std::move(bare)) {
  state_->handle.object = this;
}

namespace {

// Whether ULEXITE_MEASURE is 1.
bool measure_is_wanted() noexcept {
  const char* const given = std::getenv("ULEXITE_MEASURE");
  const std::string_view wish = given ? given : "";
  static std::atomic<bool> told{false};
  if (wish != "" && wish != "0" && wish != "1" && !told.exchange(true, std::memory_order_relaxed))  // once is enough
    detail::warn("ULEXITE_MEASURE=%s is not 0 or 1: it is ignored", given);
  return wish == "1";
}

}  // namespace

runtime::runtime(runtime_options options) : runtime(std::make_unique<detail::runtime_state>(std::move(options))) {
  static std::atomic<std::uint64_t> made{0};
  state_->handle.number = made.fetch_add(1, std::memory_order_relaxed) + 1;  // counter
  if (const detail::runtime_state* const here = detail::runtime_of_caller())
    state_->handle.around = here->handle.around != 0 ? here->handle.around : here->handle.number;
  if (state_->options.on_deadlock != deadlock_action::ignore)
    state_->monitor.calls.when_quiet = detail::detect_deadlock;
  if (const auto limit = detail::stuck_after(state_->options); limit.count() != 0) {
    state_->monitor.calls.when_stuck = detail::report_stuck_worker;
    state_->monitor.calls.stuck_after = std::chrono::nanoseconds(limit).count();
  }
  if (const int signal = detail::signal_dump::wanted(state_->options.dump_signal); signal != 0)
    signal_dump_ = std::make_unique<detail::signal_dump>(*state_, signal);
  detail::try_report_file();
  if (state_->options.measure || measure_is_wanted()) detail::measure_times(*state_);
  if (detail::has_probes) {
    state_->monitor.calls.at_tick = detail::poll_probes;
    detail::poll_probes(*state_);
  }
  trace_file_ = detail::trace_file::of_environment(*state_);
}

runtime::~runtime() {
  if (detail::is_on_thread_within(*state_)) {  // std::exit, most likely
    detail::warn("~runtime was called on a thread of that runtime: its fibers run on until the process ends");
    static_cast<void>(state_.release());
    static_cast<void>(signal_dump_.release());
    static_cast<void>(trace_file_.release());
    return;
  }
  if (!ended()) shutdown(shutdown_mode::cancel);
}

void runtime::check_outside(const char* operation) const {
  scheduler* const here = this_scheduler();
  if (here && &here->runtime() == state_.get())
    throw usage_error(std::string(operation) + " was called by a fiber of that runtime");
  if (ended()) throw usage_error(std::string(operation) + " was called after shutdown");
}

runtime::main_run::main_run(runtime& runtime) : rt(*runtime.state_) {
  runtime.check_outside("runtime::run");
  detail::check_may_wait(detail::this_agent(), detail::wait_kind::join);
  rt.threads.ensure_worker();
  if (rt.handle.running_main.exchange(true, std::memory_order_acquire))  // pairs with ~main_run
    throw usage_error("runtime::run was called while another run is under way");
}

runtime::main_run::~main_run() {
  rt.handle.running_main.store(false, std::memory_order_release);  // pairs with main_run
}

// A dump does not list the wait of a plain thread in run().
void runtime::main_run::wait_for(detail::task& task) const {
  detail::agent& self = detail::this_agent();
  detail::thread_agent* const thread =
      self.kind == detail::agent_kind::thread ? &static_cast<detail::thread_agent&>(self) : nullptr;
  if (thread) thread->is_listed = false;
  task.join();
  if (thread) thread->is_listed = true;
  if (rt.handle.deadlocked.load(std::memory_order_relaxed)) {  // written before the end of the task was made possible
    task.take_failure();
    throw std::system_error(make_error_code(errc::deadlock), "ulexite::runtime::run");
  }
}

// During a shutdown the fibers that are left may still use their runtime.
detail::runtime_state& runtime::state_for_outside_call(const char* operation) {
  scheduler* const here = this_scheduler();
  if (ended() && !(here && &here->runtime() == state_.get()))
    throw usage_error(std::string("runtime::") + operation + " was called after shutdown");
  state_->threads.ensure_worker();
  return *state_;
}

void runtime::check_alive(const char* operation) const {
  if (quiet_.load(std::memory_order_relaxed))  // hint
    throw usage_error(std::string("runtime::") + operation + " was called after shutdown");
}

runtime& current_runtime() {
  detail::runtime_handle& handle = detail::this_runtime_state().handle;
  if (detail::controlled()) handle.named_in_run = true;
  return *handle.object;
}

void runtime::request_stop() noexcept { state_->request_stop(); }

std::size_t runtime::shutdown(shutdown_mode mode) {
  check_outside("runtime::shutdown");
  if (detail::runtime_of_thread() == state_.get())  // in a call that may block
    throw usage_error("runtime::shutdown was called on a thread of that runtime, which it would wait for");
  if (ended_.exchange(true, std::memory_order_relaxed))  // decides between two calls at the same time
    throw usage_error("runtime::shutdown was called twice at the same time");
  if (mode == shutdown_mode::cancel) state_->request_stop();
  if (mode != shutdown_mode::abandon) state_->wait_until_quiet();
  quiet_.store(true, std::memory_order_relaxed);  // hint
  signal_dump_.reset();
  trace_file_.reset();
  const std::size_t left = state_->end_workers();
  if (left != 0) detail::warn("runtime stopped: %zu fibers abandoned", left);
  return left;
}

void runtime::dump(std::ostream& out, const dump_options& options) const {
  check_alive("dump");
  const detail::runtime_report report = collect(*state_, options);
  detail::write_plainly(out, [&](std::ostream& plain) { write_text(plain, report); });
}

void runtime::dump_json(std::ostream& out, const dump_options& options) const {
  check_alive("dump_json");
  const detail::runtime_report report = collect(*state_, options);
  detail::write_plainly(out, [&](std::ostream& plain) { write_json(plain, report); });
}

void runtime::write_prometheus(std::ostream& out, const prometheus_options& options) const {
  check_alive("write_prometheus");
  const auto long_wait = static_cast<std::uint32_t>(std::clamp<std::int64_t>(options.long_wait.count(), 0, UINT32_MAX));
  const detail::runtime_report report = collect(
      *state_, {.backtraces = long_wait != 0, .max_groups = std::numeric_limits<std::size_t>::max()}, long_wait);
  detail::write_plainly(out, [&](std::ostream& plain) {
    detail::write_prometheus(plain, report);
    if (long_wait != 0) detail::write_long_waits(plain, report, options.max_places);
    detail::write_prometheus(plain, times());
  });
}

void runtime::start_trace(const trace_options& options) {
  check_alive("start_trace");
  if (!detail::start_trace(*state_, options)) throw usage_error("runtime::start_trace was called twice");
}

void runtime::stop_trace() noexcept { detail::stop_trace(*state_); }

void runtime::write_trace(std::ostream& out) const {
  bool started = true;
  detail::write_plainly(out, [&](std::ostream& plain) { started = detail::write_trace(plain, *state_); });
  if (!started) throw usage_error("runtime::write_trace was called before start_trace");
}

void runtime::resize(std::size_t threads) {
  check_alive("resize");
  if (state_->schedulers.front()->is_controlled())
    throw usage_error("runtime::resize was called in a deterministic run, which has one worker");
  if (threads == 0 || threads > state_->threads.most())
    throw std::invalid_argument("runtime::resize(" + std::to_string(threads) + "): from 1 to " +
                                std::to_string(state_->threads.most()) + " workers are possible");
  state_->threads.resize(threads);
}

detail::runtime_state& detail::state_of(runtime& runtime) noexcept { return *runtime.state_; }

runtime_metrics runtime::metrics() const noexcept { return state_->metrics(); }

runtime_times runtime::times() const noexcept { return detail::times_of(*state_); }

bool in_fiber() noexcept {
  scheduler* const here = this_scheduler();
  return here && here->running();
}

}  // namespace ulexite
