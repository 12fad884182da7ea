#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/suspend.hpp>
#include <ulexite/runtime/task.hpp>

#include <cstring>
#include <mutex>

namespace ulexite::detail {
namespace {

// The calling worker's blocks, if it is one of `pool`'s runtime.
task_pool::cache* blocks_for(const task_pool& pool) noexcept {
  scheduler* const here = scheduler::current();
  return here && &here->home().tasks == &pool ? &here->blocks() : nullptr;
}

// Numbers are given to threads by the hundred, so that spawning touches nothing shared.
std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> given{0};
  constexpr std::uint64_t batch = 100;
  thread_local std::uint64_t next = 0, end = 0;
  if (next == end) {
    next = given.fetch_add(batch, std::memory_order_relaxed);  // counter
    end = next + batch;
  }
  return ++next;
}

}  // namespace

void* allocate_task(core& home, std::size_t size) {
  home.count_spawn();
  try {
    return home.tasks.allocate(size, blocks_for(home.tasks));
  } catch (...) {
    home.count_end();
    throw;
  }
}

void deallocate_task(core& home, void* room) noexcept {
  home.count_end();
  task_pool::deallocate(room, blocks_for(home.tasks));
}

void launch(task& task, const task_options& options) {
  core& home = *task.home;
  try {
    if (!options.name.empty()) task.set_name(options.name);
    if (options.stack_size != 0) task.wanted_stack = stack_pool::of_size(options.stack_size).stack_size();
  } catch (...) {
    task.detach_at_birth();
    task.abandon();
    throw;
  }
  task.id = next_id();
  task.where = options.where;
  if (options.detached) task.detach_at_birth();
  home.make_runnable(task);
}

task::~task() { delete[] name; }

void task::set_name(std::string_view text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  delete[] std::exchange(name, copy);
}

void task::destroy() noexcept {
  task_pool& pool = task_pool::of(this);
  report_failure();
  operations_.destroy(*this);
  task_pool::deallocate(this, blocks_for(pool));
}

void task::complete() noexcept {
  if (standing) {
    check_stack_canary(*standing);
    standing->owner.store(nullptr, std::memory_order_release);  // pairs with the overflow handler's load
  }
  if (failure && home->stop_requested()) agent().word.request_stop();  // spawned after the request: asked all the same
  state.finish();
  home->count_end();
  if (detached_at_birth_) {
    destroy();
    return;
  }
  lock_.lock();
  done_ = true;
  detail::agent* const joiner =
      joiner_ && joiner_->word.claim(wake_reason::notified) == claim_result::won ? joiner_ : nullptr;
  const bool last = released_;
  lock_.unlock();
  if (joiner) resume(*joiner);
  if (last) destroy();
}

void task::abandon() noexcept {
  if (state.phase() == fiber_phase::fresh) operations_.abandon(*this);
  failure = std::make_exception_ptr(operation_cancelled());
  agent().word.request_stop();
  complete();
}

bool task::join(std::int64_t deadline) noexcept {
  lock_.lock();
  if (done_) {
    lock_.unlock();
    return true;
  }
  detail::agent& self = this_agent();
  joiner_ = &self;
  if (suspend(lock_, cancellable::no, deadline) == wake_reason::notified) return true;
  const std::lock_guard lock(lock_);
  joiner_ = nullptr;
  return done_;
}

bool task::done() noexcept {
  const std::lock_guard lock(lock_);
  return done_;
}

void task::release() noexcept {
  lock_.lock();
  released_ = true;
  const bool last = done_;
  lock_.unlock();
  if (last) destroy();
}

bool task::request_stop() noexcept {
  const auto result = agent().word.request_stop();
  if (result.must_resume) resume(agent());
  return result.first;
}

// The last reference goes, and nobody took the exception.
void task::report_failure() noexcept {
  if (!failure || failure_taken_) return;
  try {
    std::rethrow_exception(failure);
  } catch (const operation_cancelled&) {
    if (agent().word.stop_requested()) return;
  } catch (...) {
  }
  task_pool::of(this).report_unhandled(name ? name : "", failure);
}

}  // namespace ulexite::detail
