#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <future>
#include <mutex>
#include <string>

namespace ulexite {

// Called when the child is made, before it is published. After a stop of its group it starts with the request.
void task_group::enter(member& made, detail::task& who) noexcept {
  made.who = &who;
  const std::lock_guard lock(lock_);
  ++size_;
  if (stop_) who.agent().word.request_stop();
  (stop_ ? told_ : members_).push_back(made);
}

// The last one ends the wait for all. Whoever finds a size of zero had the lock. So after its release, the last use of
// the group here, the group may be destroyed. A waiter that is cancelled takes the lock before it leaves.
void task_group::leave(member& child) noexcept {
  leave_room();
  if (!child.who) return;
  const detail::yield_point at_exit;
  detail::intrusive_list<detail::wait_node> woken;
  detail::perturb();
  {
    const std::lock_guard lock(lock_);
    detail::intrusive_list<member>::remove(child);
    if (--size_ == 0) queue_.claim_all(woken);
  }
  detail::resume_all(woken);
}

std::size_t task_group::size() const noexcept {
  const std::lock_guard lock(lock_);
  return size_;
}

void task_group::refuse_batch(std::size_t count) {
  throw usage_error("task_group: a batch of " + std::to_string(count) + " children is more than " +
                    std::to_string(most_at_once));
}

std::ptrdiff_t task_group::checked(std::size_t limit) {
  const auto room = static_cast<std::ptrdiff_t>(limit);
  if (room <= 0) throw usage_error("task_group: a limit of " + std::to_string(room) + " children");
  return room;
}

task_group::~task_group() {
  stop_and_wait();
  if (interrupted_) body_->word.end_interrupt();
  if (first_.what && !first_.inherited_deadline && std::uncaught_exceptions() <= uncaught_at_construction_)
    detail::report_unhandled(*first_.reporter, first_.whose, first_.what);
}

bool task_group::wait_for_children(std::int64_t deadline) {
  detail::agent& self = detail::this_agent();
  detail::throw_if_stopped(self);
  lock_.lock();
  if (size_ == 0) {
    lock_.unlock();
    detail::spend_budget(self);
    return true;
  }
  detail::wait_node node(self);
  return detail::wait_or_throw(queue_, lock_, node, detail::wait_kind::task_group, this, deadline);
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

void task_group::interrupt_body_on_failure() noexcept {
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
  bool claimed;
  {
    const std::lock_guard lock(lock_);  // the body may know already, and wait for something else
    claimed = interrupted_ && body_->word.cancel();
  }
  if (claimed) detail::resume(*body_);
}

// Called when a wait gives a failure to its caller. If that is the body, it knows now.
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
  bool any;
  {
    const std::lock_guard lock(lock_);
    if (std::exchange(stop_, true)) return false;
    token = token_;
    any = !members_.empty();
    members_.for_each([](member& each) { each.who->agent().word.request_stop(); });
  }
  for (;;) {
    detail::run_stop_callbacks(std::move(token));
    if (!any) return true;
    const std::lock_guard lock(lock_);
    member* const next = members_.pop_front();
    if (!next) break;
    told_.push_back(*next);
    token = next->who->stop_source();
  }
  wake_stopped();
  return true;
}

// One fence is enough for all.
void task_group::wake_stopped() noexcept {
  detail::std_atomics::heavy_fence();  // wait_word.hpp C
  detail::intrusive_queue<job> cancelled;
  {
    const std::lock_guard lock(lock_);
    told_.for_each([&](member& each) { detail::cancel_wait(each.who->agent(), cancelled); });
  }
  while (job* const next = cancelled.pop()) detail::resume(static_cast<detail::task*>(next)->agent());
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

// Called in a catch block of the failure, by the child. It leaves those that are asked to stop, but has not ended.
void task_group::note_failure(member& failed) noexcept {
  detail::task& whose = *failed.who;
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
    detail::intrusive_list<member>::remove(failed);
    told_.push_back(failed);
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
