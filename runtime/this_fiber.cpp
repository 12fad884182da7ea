#include <ulexite/base/error.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <thread>

namespace ulexite {
namespace this_fiber {

std::stop_token get_stop_token() { return detail::this_stop_token(); }

std::uint64_t id() noexcept {
  const detail::task* const self = detail::this_task();
  return self ? self->id : 0;
}

std::string_view name() noexcept {
  const detail::task* const self = detail::this_task();
  return self && self->name ? self->name : std::string_view{};
}

void set_name(std::string_view name) {
  if (detail::task* const self = detail::this_task()) self->set_name(name);
}

void* user_data() noexcept {
  const detail::current_execution& here = detail::inlined_execution();
  if (!here.scheduler || !here.scheduler->running()) return nullptr;
  const detail::rare_task_state* const rare = here.scheduler->running()->rare_state_if_made();
  return rare ? rare->user_data : nullptr;
}

void set_user_data(void* data) {
  detail::task* const self = detail::this_task();
  if (!self) throw usage_error("this_fiber::set_user_data outside of a fiber");
  self->rare_state().user_data = data;
}

void yield() noexcept {
  detail::scheduler* const here = detail::inlined_execution().scheduler;
  if (here && here->running()) {
    here->yield();
  } else {
    std::this_thread::yield();
  }
}

void yield_if_requested() noexcept {
  const detail::current_execution& here = detail::inlined_execution();
  if (!here.scheduler || here.agent->kind != detail::agent_kind::fiber) return;
  if (here.forks) {
    here.forks->yield_if_requested();
  } else if (here.scheduler->asked(detail::request::yield)) {
    here.scheduler->yield();
  }
}

std::optional<steady_clock::time_point> deadline() noexcept {
  const std::int64_t deadline = detail::this_agent().deadline;
  if (deadline == detail::no_deadline) return std::nullopt;
  return steady_clock::time_point(std::chrono::nanoseconds(deadline));
}

void check() { detail::check_cancelled(detail::this_agent()); }

stack_info stack() noexcept {
  const detail::task* const self = detail::this_task();
  if (!self) return {};
  const detail::stack& stack = *self->current_stack;
  auto top = static_cast<const char*>(__builtin_frame_address(0));
  const auto is_inside = [&] { return top >= stack.low && top < stack.high; };
  if (!is_inside()) top = static_cast<const char*>(self->saved.frame);  // in on_thread_stack
  return {stack.size(), is_inside() ? static_cast<std::size_t>(stack.high - top) : 0, detail::stack_high_water(stack)};
}

}  // namespace this_fiber

void detail::sleep_until(std::int64_t deadline) {
  agent& self = this_agent();
  throw_if_stopped(self);
  if (deadline <= now_ns()) {
    this_fiber::yield();
    return;
  }
  self.word.prepare();
  const auto mode = waiting_for(wait_kind::sleep, nullptr, cancellable::yes);
  if (suspend_prepared(self, mode, deadline) == wake_reason::cancelled) throw_cancelled();
}

}  // namespace ulexite
