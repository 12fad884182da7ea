#include <ulexite/base/error.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <future>
#include <mutex>

namespace ulexite {

// A child that begins after a stop of its group gets the request here.
task_group::member::member(task_group& group) noexcept : who(*detail::this_task()), group_(group) {
  bool stopped;
  {
    const std::lock_guard lock(group.lock_);
    stopped = group.stop_;
    (stopped ? group.told_ : group.members_).push_back(*this);
  }
  if (stopped) who.request_stop();
}

task_group::member::~member() {
  const std::lock_guard lock(group_.lock_);
  detail::intrusive_list<member>::remove(*this);
}

std::ptrdiff_t task_group::checked(std::size_t limit) {
  if (limit == 0) throw usage_error("task_group: a limit of 0 children");
  return static_cast<std::ptrdiff_t>(std::min(limit, unlimited));
}

task_group::~task_group() {
  stop_and_wait();
  if (interrupted_) body_->word.end_interrupt();
  if (first_.what && !first_.inherited_deadline && std::uncaught_exceptions() <= exceptions_at_birth_)
    detail::report_unhandled(*first_.reporter, first_.whose, first_.what);
}

bool task_group::wait_for_children(std::int64_t deadline) {
  return running_.wait_until_ns(deadline, detail::wait_kind::task_group, this);
}

bool task_group::wait_until_ns(std::int64_t deadline) {
  try {
    if (!wait_for_children(deadline)) return false;
  } catch (const operation_cancelled&) {
    cancel_and_wait();
    throw;
  }
  throw_failure(take_failure(true));
  return true;
}

void task_group::throw_failure(std::exception_ptr failure) {
  if (!failure) return;
  end_interrupt();
  std::rethrow_exception(std::move(failure));
}

// Throws an earlier failure of a child rather than the caller's cancellation, because the failure may be its cause. If
// the failure cancelled the body, it is the cause, even if it is a deadline that the body does not have.
void task_group::cancel_and_wait() {
  auto failure = take_failure(false);
  stop_and_wait();
  throw_failure(std::move(failure));
}

// The body of a scope leaves by an exception that only says that the other side has ended. A child that unwinds closes
// its end of a channel before its failure is noted, so the body may hear of the closed channel first.
void task_group::end_by_consequence() {
  stop_and_wait();
  throw_failure(take_failure(false));
}

// Throws the body's exception, unless a child's failure goes before it.
void task_group::leave_body() {
  try {
    throw;
  } catch (const operation_cancelled&) {
    cancel_and_wait();
    throw;
  } catch (const channel_closed&) {
    end_by_consequence();
    throw;
  } catch (const std::future_error& error) {
    if (error.code() == std::future_errc::broken_promise) end_by_consequence();
    throw;
  }
}

void task_group::stop_and_wait() {
  request_stop();
  const shield uninterrupted;
  wait_for_children(detail::no_deadline);
}

std::exception_ptr task_group::take_failure(bool of_inherited_deadline_too) noexcept {
  const std::lock_guard lock(lock_);
  if (first_.inherited_deadline && !of_inherited_deadline_too && !interrupted_) return nullptr;
  return std::exchange(first_.what, nullptr);
}

void task_group::watch_body() noexcept {
  detail::agent& self = detail::this_agent();
  if (self.kind == detail::agent_kind::fiber) body_ = &self;
}

// Called by a child.
void task_group::interrupt_body() noexcept {
  {
    const std::lock_guard lock(lock_);
    if (!body_ || std::exchange(interrupted_, true)) return;
    body_->word.interrupt();
  }
  detail::std_atomics::heavy_fence();  // wait_word.hpp C
  if (body_->word.cancel()) detail::resume(*body_);
}

// Called when a wait gives a failure to its caller. If that is the body, it knows now. The children have ended, and so
// have their interrupts.
void task_group::end_interrupt() noexcept {
  if (body_ != &detail::this_agent()) return;
  const std::lock_guard lock(lock_);
  if (std::exchange(interrupted_, false)) body_->word.end_interrupt();
}

// First all children get the request. Then their tokens get it, one by one and without the lock, because this runs
// callbacks of the user. Last, the waiting children are woken.
bool task_group::request_stop() noexcept {
  const detail::yield_point at_exit;
  std::stop_source token(std::nostopstate);
  {
    const std::lock_guard lock(lock_);
    if (std::exchange(stop_, true)) return false;
    token = token_;
    members_.for_each([](member& each) { each.who.agent().word.request_stop(); });
  }
  for (;;) {
    detail::run_stop_callbacks(std::move(token));
    const std::lock_guard lock(lock_);
    member* const next = members_.pop_front();
    if (!next) break;
    told_.push_back(*next);
    token = next->who.stop_source();
  }
  wake_stopped();
  return true;
}

// One fence is enough for all.
void task_group::wake_stopped() noexcept {
  member* woken = nullptr;
  {
    const std::lock_guard lock(lock_);
    if (!told_.empty()) detail::std_atomics::heavy_fence();  // wait_word.hpp C
    told_.for_each([&](member& each) {
      if (each.who.agent().word.cancel()) each.next_woken = std::exchange(woken, &each);
    });
  }
  while (woken) detail::resume(std::exchange(woken, woken->next_woken)->who.agent());
}

std::stop_token task_group::get_stop_token() {
  std::stop_source fresh;
  {
    const std::lock_guard lock(lock_);
    if (!token_.stop_possible()) token_ = fresh;
    fresh = token_;
    if (!stop_) return fresh.get_token();
  }
  detail::run_stop_callbacks(fresh);
  return fresh.get_token();
}

std::size_t task_group::failures() const noexcept {
  const std::lock_guard lock(lock_);
  return failures_;
}

// Called in a catch block of the failure.
void task_group::note_failure(detail::task& whose) noexcept {
  bool inherited_deadline = false;
  try {
    throw;
  } catch (const operation_cancelled&) {
    if (whose.agent().word.stop_requested()) return;
    inherited_deadline = whose.agent().expired;
  } catch (...) {
  }
  whose.take_failure();
  failure mine{std::current_exception(), whose, {}, detail::task_pool::of(&whose).handler(), inherited_deadline};
  try {
    if (whose.name) mine.name = whose.name;
  } catch (const std::bad_alloc&) {  // then it is reported without its name
  }
  {
    const std::lock_guard lock(lock_);
    ++failures_;
    if (!first_.what) {
      std::swap(first_, mine);
      first_.whose.name = first_.name.c_str();
    }
  }
  if (policy_ == on_error::cancel_siblings) request_stop();
  interrupt_body();
}

}  // namespace ulexite
