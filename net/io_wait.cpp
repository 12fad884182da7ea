#include <ulexite/base/error.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/net/fd_wait.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/here.hpp>
#include <ulexite/runtime/waiting_event.hpp>

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>

namespace ulexite::detail {
namespace {

enum class readiness_now : bool { no, yes };

// Asks the kernel, for no longer than `patience` (null: as long as it takes).
std::error_code ask(int fd, direction direction, const timespec* patience, readiness_now& answer) noexcept {
  pollfd query{fd, static_cast<short>(direction == direction::read ? POLLIN | POLLRDHUP : POLLOUT), 0};
  const int ready = or_errno(::ppoll(&query, 1, patience, nullptr));
  answer = ready > 0 ? readiness_now::yes : readiness_now::no;
  if (ready < 0) return ready == -EINTR ? std::error_code() : std::error_code(-ready, std::system_category());
  if (ready > 0 && (query.revents & POLLNVAL)) return {EBADF, std::system_category()};
  return {};
}

// A plain thread's wait. Its own deadline bounds it too, as in suspend.
std::error_code block_in_poll(int fd, direction direction, std::int64_t limit) noexcept {
  agent& self = this_agent();
  const std::int64_t deadline = std::min(limit, self.deadline);
  for (;;) {
    timespec left{};
    const std::int64_t now = deadline == no_deadline ? 0 : now_ns();
    const std::int64_t time = std::max<std::int64_t>(deadline - now, 0);
    left.tv_sec = time / 1'000'000'000;
    left.tv_nsec = time % 1'000'000'000;
    auto answer = readiness_now::no;
    const std::error_code error = ask(fd, direction, deadline == no_deadline ? nullptr : &left, answer);
    if (error || answer == readiness_now::yes) return error;
    if (time != 0) continue;
    if (deadline == limit) return std::make_error_code(std::errc::timed_out);
    self.expired = true;
    return errc::deadline_exceeded;
  }
}

// A source for one wait.
class short_registration final {
 public:
  short_registration(event_loop& loop, int fd) : loop_(loop), source_(loop.open(fd)) {}
  ~short_registration() {
    event_list woken;
    loop_.close(source_, woken);  // nobody: the only waiter is the caller
  }
  short_registration(const short_registration&) = delete;
  short_registration& operator=(const short_registration&) = delete;

  std::error_code wait(direction direction, std::int64_t deadline) noexcept {
    side waited_for(source_, direction);
    return wait_for_edge(waited_for, deadline);
  }

 private:
  struct side final : edge_side {
    side(fd_source& s, detail::direction d) noexcept : source(s), towards(d) {}
    bool arm(event& edge) noexcept override { return event_loop::arm(source, towards, edge); }
    void disarm(event& edge) noexcept override { event_loop::disarm(source, towards, edge); }
    fd_source& source;
    const detail::direction towards;
  };

  event_loop& loop_;
  fd_source& source_;
};

// The kernel is asked after the registration: if the descriptor is registered elsewhere too, as its owner's, the new
// registration gets no edge for what is ready already. And it is asked again after each edge, which may be a stale one.
std::error_code wait_registered(event_loop& loop, int fd, direction direction, std::int64_t deadline) {
  short_registration registration(loop, fd);
  for (;;) {
    const timespec at_once{};
    auto answer = readiness_now::no;
    if (const auto error = ask(fd, direction, &at_once, answer)) return error;
    if (answer == readiness_now::yes) return {};
    if (deadline != no_deadline && deadline <= now_ns()) return std::make_error_code(std::errc::timed_out);
    if (const auto error = registration.wait(direction, deadline)) return error;
  }
}

}  // namespace

core* calling_runtime() noexcept {
  scheduler* const here = this_scheduler();
  return here ? &here->home() : nullptr;
}

#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noipa]]
#endif
[[gnu::noinline]] int
last_errno() noexcept {
  int* address = &errno;
  asm volatile("" : "+r"(address));
  return *address;
}

// The order is: prepare the word, arm, suspend. From the prepare on the edge may claim the wait, before the fiber has
// left its stack: then the claim is early, the commit after the switch fails, and the fiber goes on at once. So no edge
// between arm and suspend is lost. If arm says that the source is ready, it has not taken the event, nobody can have
// claimed the word, and the wait is retracted. After a time-out or a cancellation the source may still hold the event,
// which is taken back before its frame is left; an edge, or a close, let go of it before it claimed. An edge whose
// claim fails, or is early, stays remembered in the source.
std::error_code wait_for_edge(edge_side& side, std::int64_t deadline) noexcept {
  agent& self = this_agent();
  event edge;
  tie<wake_reason::notified>(edge, self);
  self.word.prepare();
  if (!side.arm(edge) && self.word.retract()) return {};
  const wake_reason reason = suspend_prepared(self, cancellable::yes, deadline);
  if (reason == wake_reason::notified) return {};
  side.disarm(edge);
  if (reason == wake_reason::timed_out) return std::make_error_code(std::errc::timed_out);
  return stop_cause(self);
}

std::error_code wait_without_source(int fd, direction direction, std::int64_t deadline) noexcept {
  core* const here = calling_runtime();
  if (!here) return block_in_poll(fd, direction, deadline);
  try {
    return wait_registered(*here->loop, fd, direction, deadline);
  } catch (const std::system_error& refused) {
    if (refused.code() == std::errc::operation_not_permitted) return {};  // epoll's word for: always ready
    return refused.code();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

bool wait_for_fd(int fd, bool writable, std::int64_t deadline) {
  throw_if_stopped();
  const std::error_code error = wait_without_source(fd, writable ? direction::write : direction::read, deadline);
  if (!error) {
    spend_budget();
    return true;
  }
  if (error.category() == error_category()) throw_cancelled(error);  // first: deadline_exceeded equals timed_out
  if (error == std::errc::timed_out) return false;
  throw std::system_error(
      error, std::string("ulexite: waiting to ") + (writable ? "write" : "read") + " fd " + std::to_string(fd));
}

}  // namespace ulexite::detail
