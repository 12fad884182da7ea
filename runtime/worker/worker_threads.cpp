// The threads of the workers: started one by one when there is work, kept until the runtime ends. The monitor is
// started with the first.

#include <ulexite/base/error.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/runtime/threads/cpus.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/worker_threads.hpp>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace ulexite::detail {

// More workers than processors make waits in loops yield the processor (scheduler::search).
worker_threads::worker_threads(runtime_state& rt, const runtime_options& options)
    : runtime_(rt),
      first_limit_(worker_limit(options.threads)),
      most_(std::max(first_limit_, most_workers(options.max_threads))),
      crowded_(most_ > processors()),
      quota_{.counts = follows_quota(options.threads), .last = now_ns()} {
  threads_.reserve(most_ + 1);
}

// The first worker is started only here, so that a refusal reaches the caller as an exception.
void worker_threads::ensure_worker() {
  if (first_.done.load(std::memory_order_acquire)) return;  // A
  if (runtime_.is_ending()) return;                         // count_spawn refuses the fiber
  // One thread tries, and the others wait for its result. A stack is provided first, so that a refusal of memory is
  // thrown too.
  const std::lock_guard lock(first_.mutex);
  if (first_.done.load(std::memory_order_relaxed)) return;  // the mutex is held
  runtime_.stacks.ensure_one();
  // An earlier refusal must not keep this try from being made: its result goes to the caller.
  refused_until_.set(0);
  runtime_.parker.wake_one();
  if (runtime_.parker.counts().started == 0)
    throw std::system_error(first_.refused, "ulexite: the first worker thread");
  first_.done.store(true, std::memory_order_release);  // A
}

// After a refusal no start is tried for a while: each try is a system call, made by a thread that publishes work.
bool worker_threads::starts_suspended() const noexcept { return refused_until_.get() > now_ns(); }

// A worker takes over the search role of the thread that found that one is needed. A thread takes over the
// floating-point mode and the signal mask that the maker of the runtime had.
bool worker_threads::start() noexcept {
  const std::lock_guard lock(runtime_.parker.mutex());
  // Checked under the mutex, under which end_all has set it.
  if (runtime_.is_ending()) return false;  // no thread would join it
  try {
    if (threads_.empty()) {
      threads_.emplace_back([this] {
        set_runtime_of_thread(runtime_);  // it may run stop callbacks of fibers
        inherited_.adopt();
        runtime_.monitor.run();
      });
    }
    threads_.emplace_back([this, index = started_] {
      set_runtime_of_thread(runtime_);
      inherited_.adopt();
      runtime_.schedulers[index]->searching = true;  // who starts a worker makes it a searcher
      if (task* const on_leave = be_worker(index)) runtime_.inject(*on_leave, priority::woken);
    });
    ++started_;
    runtime_.monitor.wake();
    return true;
  } catch (const std::exception& why) {
    on_refusal(why);
    return false;
  }
}

// For the first worker the reason is kept, because ensure_worker throws it.
void worker_threads::on_refusal(const std::exception& why) noexcept {
  const auto* const told = dynamic_cast<const std::system_error*>(&why);  // else std::bad_alloc
  if (started_ == 0) first_.refused = told ? told->code() : make_error_code(std::errc::not_enough_memory);
  refused_.add();
  refused_until_.set(now_ns() + tuning::start_pause);
}

// The hook may take long, and wait for fibers. So the worker is no searcher during the hook, and other threads do not
// rely on it. Work that is published from now on wakes or starts another worker. If more is published already than the
// workers in their hooks will take, another is woken here. The monitor helps if a hook takes too long.
void worker_threads::call_start_hook(std::size_t index) {
  const std::size_t coming = in_hooks_.fetch_add(1, std::memory_order_relaxed) + 1;  // hint
  if (runtime_.parker.leave_search(*runtime_.schedulers[index]) && runtime_.queued() > coming)
    runtime_.parker.wake_one();
  runtime_.options.on_thread_start(index);
  in_hooks_.fetch_sub(1, std::memory_order_relaxed);  // hint
}

// The life of a worker on one thread: a signal stack for reports of overflows, the hooks of the user, and between them
// the loop. Called by the thread that was started for the worker, and by a thread that takes it over
// (worker_handoff.cpp).
task* worker_threads::be_worker(std::size_t index) noexcept {
  const signal_stack signals;
  if (runtime_.options.on_thread_start) call_start_hook(index);
  task* const on_leave = runtime_.schedulers[index]->run();
  if (runtime_.options.on_thread_stop) runtime_.options.on_thread_stop(index);
  return on_leave;
}

// First no thread can be started; then the sleeping workers are woken to end. The threads are joined without the mutex,
// because each takes it on its way out of its sleep.
void worker_threads::end_all() noexcept {
  std::vector<std::thread> ended;
  {
    const std::lock_guard lock(runtime_.parker.mutex());
    for (const auto& s : runtime_.schedulers) {
      s->ask(request::end);  // for start and the monitor, ordered by the mutex
      s->ask(request::yield);
    }
    runtime_.monitor.on_end();
    ended.swap(threads_);
  }
  runtime_.parker.stop();
  for (std::thread& thread : ended) thread.join();
}

// A quota can only lower the limit. A larger quota than at the start raises it again, but not above the first limit.
void worker_threads::apply_quota(const std::string& process) {
  const std::size_t granted = std::min(first_limit_, quota_processors(process));
  const std::lock_guard lock(quota_.guard);
  if (!quota_.ignored && granted != runtime_.parker.limit()) runtime_.resize(granted);
}

void worker_threads::resize(std::size_t to) noexcept {
  const std::lock_guard lock(quota_.guard);
  quota_.ignored = true;
  runtime_.resize(to);
}

// Go 1.25 does so too, each second.
void worker_threads::check_quota(std::int64_t now) noexcept try {
  if (!quota_.counts || now - quota_.last < tuning::quota_interval) return;
  // Set before the read, so that a failed read is not repeated at each tick.
  quota_.last = now;
  apply_quota("/proc/self");
} catch (const std::bad_alloc&) {
  // The next time.
}

}  // namespace ulexite::detail
