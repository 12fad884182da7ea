#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_wait.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace ulexite::detail {
namespace {

event& event_in(std::byte* room) noexcept {
  static_assert(sizeof(event) == 3 * sizeof(void*) && std::is_trivially_destructible_v<event>);
  return *std::launder(reinterpret_cast<event*>(room));
}

}  // namespace

socket_wait::socket_wait(socket* on, bool reads, bool edge_is_enough) noexcept
    : stackless_wait(waiting_for_fd(on ? on->fd() : -1, reads ? direction::read : direction::write)),
      on_(on),
      side_(reads ? direction::read : direction::write),
      edge_is_enough_(edge_is_enough),
      deadline_(on ? on->expiry(side_) : no_deadline) {
  new (edge_) event();
}

bool socket_wait::ready(agent& self) {
  if (!attempt_or_wait(self)) return false;
  done_ = true;
  return goes_on(self);
}

void socket_wait::block() { attempt(deadline_); }

bool socket_wait::attempt_or_wait(agent& self) {
  for (;;) {
    if (deadline_ != no_deadline && deadline_ <= now_ns() && !may_have_to_stop(self)) [[unlikely]] {
      error_ = std::make_error_code(std::errc::timed_out);
      return true;
    }
    attempt(socket::never_wait);
    if (error_ != std::errc::resource_unavailable_try_again) return true;
    if (wait_for_edge(self)) return false;
    if (error_ || done_) return true;
  }
}

// False: it is ready, perhaps, or has failed, or is done. As socket::wait. Where the runtime's event loop does not
// watch the socket, or another has the turn at a shared one, the operation is made here, and keeps the stack.
bool socket_wait::wait_for_edge(agent& self) {
  check_may_wait(self, wait_mode::kind_of(mode().bits));
  if (needs_timer(self, deadline_)) provide_timer();
  error_.clear();
  inside_ = on_->enter(side_, deadline_, error_);
  if (!inside_) return false;
  const auto& loop = self.fiber().runtime().loop;
  error_ = on_->register_in(loop);
  bool may_watch;
  {
    const std::lock_guard lock(on_->lock_);
    may_watch = on_->loop_ == loop && on_->user_of(side_) == &self;
  }
  if (error_ || !may_watch) {
    leave_socket();
    if (error_) return false;
    attempt(deadline_);  // here, because who leaves gives up the turn
    done_ = true;
    return false;
  }
  bind_event<wake_reason::notified>(event_in(edge_), self);
  self.word.prepare();
  if (!on_->arm(side_, event_in(edge_)) && self.word.retract()) {
    use_edge();
    return false;
  }
  begin(self, nullptr, deadline_);
  return true;
}

// The edge is gone, so the next read must try before it waits for another.
void socket_wait::use_edge() noexcept {
  if (side_ == direction::read) on_->received_.note_read(false);
  leave_socket();
}

void socket_wait::leave_socket() noexcept {
  if (std::exchange(inside_, false)) on_->leave(side_);
}

bool socket_wait::resumed(agent& self) noexcept {
  if (done_) return true;  // it has yielded
  const wake_reason reason = end(self);
  if (reason != wake_reason::notified) on_->disarm(side_, event_in(edge_));
  const bool open = on_->is_open();
  use_edge();
  if (!open)
    error_ = std::make_error_code(std::errc::bad_file_descriptor);
  else if (reason == wake_reason::timed_out)
    error_ = std::make_error_code(std::errc::timed_out);
  else if (reason == wake_reason::cancelled)
    error_ = stop_cause(self);
  else if (!edge_is_enough_)
    return resumed_attempt(self);
  return true;
}

bool socket_wait::resumed_attempt(agent& self) noexcept {
  try {
    return attempt_or_wait(self);
  } catch (...) {
    keep_exception(self);
    return failed_ = true;
  }
}

}  // namespace ulexite::detail
