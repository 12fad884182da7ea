#include <ulexite/base/error.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

namespace ulexite::detail {
namespace {

std::error_code closed_error() noexcept { return std::make_error_code(std::errc::bad_file_descriptor); }

// The reason why an operation must not begin, if any.
std::error_code refusal(const agent& self, std::int64_t deadline) noexcept {
  if (may_have_to_stop(self)) [[unlikely]]
    if (const std::error_code cause = stop_cause(self)) return cause;
  if (deadline != no_deadline && deadline != socket::never_wait && deadline <= now_ns())
    return std::make_error_code(std::errc::timed_out);
  return {};
}

// Wakes those that wait without the source. After a shutdown the peer would read an end of the stream, even if the
// close that follows is a reset, by an SO_LINGER of no time. So the reset comes first. It is the system call itself,
// because ThreadSanitizer takes a connect for the descriptor's birth, and reports a race with those who wait.
void end_connection(int fd) noexcept {
  linger at_close{};
  socklen_t size = sizeof at_close;
  const sockaddr nowhere{};  // AF_UNSPEC
  kernel::getsockopt(fd, SOL_SOCKET, SO_LINGER, &at_close, &size);
  if (at_close.l_onoff != 0 && at_close.l_linger == 0) ::syscall(SYS_connect, fd, &nowhere, sizeof nowhere);
  kernel::shutdown(fd, SHUT_RDWR);
}

}  // namespace

const direction socket::read_side = direction::read;
const direction socket::write_side = direction::write;
const ssize_t socket::would_block = -EAGAIN;

// Under the lock, because a close removes the source.
bool socket::arm(direction side, event& edge) noexcept {
  const std::lock_guard lock(lock_);
  return source_ && event_loop::arm(*source_, side, edge);
}
void socket::disarm(direction side, event& edge) noexcept {
  const std::lock_guard lock(lock_);
  if (source_) event_loop::disarm(*source_, side, edge);
}

// A path in the file system, and the file there after the bind.
struct socket::owned_path {
  char name[sizeof(sockaddr_un::sun_path) + 1];
  dev_t device;
  ino_t number;

  void remove() const noexcept {
    struct stat now{};
    if (::lstat(name, &now) == 0 && now.st_dev == device && now.st_ino == number) ::unlink(name);
  }
};

// The users without the turn. Lock held.
struct socket::sharing {
  std::size_t passing = 0;  // those not in a queue
  wait_queue queues[2];     // by direction: they wait for the turn

  [[nodiscard]] wait_queue& queue(direction side) noexcept { return queues[static_cast<unsigned>(side)]; }
  [[nodiscard]] bool in_use() noexcept {
    return passing > 0 || !queue(read_side).nobody_waits() || !queue(write_side).nobody_waits();
  }
};

socket::socket(int fd, bool plain_tcp) noexcept : plain_tcp_(plain_tcp), fd_(fd) {}
socket::~socket() = default;

void socket::share() { shared_ = std::make_unique<sharing>(); }

// Without memory the path stays.
void socket::owns_path(std::string_view path) noexcept {
  std::unique_ptr<owned_path> made(new (std::nothrow) owned_path{});
  if (!made || network_of(fd_)) return;
  path.copy(made->name, sizeof made->name - 1);
  struct stat status{};
  if (::lstat(made->name, &status) != 0) return;
  made->device = status.st_dev;
  made->number = status.st_ino;
  path_ = std::move(made);
}

// ---- inside and outside ----

// Lock held. A user that was abandoned with its runtime never leaves.
agent*& socket::user_of(direction side) noexcept {
  agent*& user = users_[static_cast<unsigned>(side)];
  if (user && user->word.abandoned()) user = nullptr;
  return user;
}

// Lock held.
bool socket::in_use() noexcept { return user_of(read_side) || user_of(write_side) || (shared_ && shared_->in_use()); }

bool socket::enter(direction side, std::int64_t deadline, std::error_code& error) {
  agent& self = this_agent();
  error = refusal(self, deadline);
  const std::lock_guard lock(lock_);
  if (closed_) {
    error = closed_error();
    return false;
  }
  agent*& user = user_of(side);
  if (user && !shared_) {
    const std::string what = side == direction::read ? "read from" : "written to";
    const std::string with = peer_.port() == 0 ? "" : " (connected with " + peer_.str() + ")";
    throw usage_error("fd " + std::to_string(fd_) + with + " is being " + what + " already: one at a time");
  }
  if (error) return false;
  if (user) {
    ++shared_->passing;
    return true;
  }
  user = &self;
  __builtin_prefetch(source_);  // it arrives during the system call, and a wait follows
  return true;
}

void socket::leave(direction side) noexcept {
  int last_fd = -1;
  bool last_of_all = false;
  agent* next = nullptr;
  {
    const std::lock_guard lock(lock_);
    agent*& user = user_of(side);
    if (!shared_) {
      user = nullptr;
    } else if (user == &this_agent()) {
      next = give_turn(side);
    } else {
      --shared_->passing;
    }
    if (closed_ && !in_use()) {
      last_fd = std::exchange(fd_, -1);
      last_of_all = orphaned_;
    }
  }
  if (last_fd >= 0) kernel::close(last_fd);
  if (last_of_all) delete this;
  if (next) resume(*next);
}

// Called by the user with the turn, with the lock held. Returns the agent to resume, if any. A waiter whose wait has
// ended otherwise stays in the queue until it leaves by itself, because the socket must not end before that.
agent* socket::give_turn(direction side) noexcept {
  agent*& user = user_of(side);
  user = nullptr;
  agent* next = nullptr;
  wait_queue& queue = shared_->queue(side);
  intrusive_list<wait_node> ending;
  while (!user && !queue.nobody_waits()) {
    wait_node& node = queue.oldest();
    if (const claimed_wait claimed = queue.claim_front()) {
      user = node.who;
      next = claimed.who;
    } else {
      ending.push_back(node);
    }
  }
  while (wait_node* const node = ending.pop_front()) queue.push_front(*node);
  return next;
}

// A fiber of the runtime that watches a shared socket would have to wait. `had_it`: it has the turn, and may wait for
// an edge. Otherwise it gets the turn, and must try first. Only such fibers queue, behind each other or behind a user
// that does not wait. So if the one with the turn is abandoned, the others are abandoned with it.
std::error_code socket::take_turn(direction side, std::int64_t deadline, bool& had_it) noexcept {
  agent& self = this_agent();
  lock_.lock();
  agent*& user = user_of(side);
  had_it = user == &self;
  if (!had_it) --shared_->passing;
  if (!had_it && user) return queue_for_turn(side, deadline);
  user = &self;
  lock_.unlock();
  return {};
}

// Called with the lock held; releases it. Whoever gives the turn has claimed the wait, and made the caller the user.
std::error_code socket::queue_for_turn(direction side, std::int64_t deadline) noexcept {
  agent& self = this_agent();
  wait_node node(self);
  shared_->queue(side).push(node);
  const wake_reason reason = suspend_and_unlock(self, lock_, waiting_for_fd(fd_, side), deadline);
  if (reason == wake_reason::notified) return {};
  const std::lock_guard lock(lock_);
  wait_queue::remove(node);
  ++shared_->passing;
  return reason == wake_reason::timed_out ? std::make_error_code(std::errc::timed_out) : stop_cause(self);
}

// The waiters are resumed, or woken by the shutdown, and find the socket closed. The descriptor stays open until the
// last waiter has left, so no waiter can use its number for another file.
//
// Another server may have removed the path and bound its own socket there. So the path goes only if its file is still
// that of the bind, and before the descriptor: until then the system gives the file's number to no other.
bool socket::close(bool at_once) noexcept { return close(at_once, nullptr); }

bool socket::close(bool at_once, int* kept) noexcept {
  event_list woken;
  int last_fd = -1;
  std::unique_ptr<const owned_path> path;
  {
    const std::lock_guard lock(lock_);
    if (closed_) return false;
    if (kept) {
      *kept = foreign_waiters_ > 0 ? -EBUSY : result_or_errno(::fcntl(fd_, F_DUPFD_CLOEXEC, 0));
      if (*kept < 0) return false;
      path_ = nullptr;
    }
    closed_ = true;
    path = std::move(path_);
    if (source_) loop_->close(*std::exchange(source_, nullptr), woken);
    if (!in_use()) {
      last_fd = std::exchange(fd_, -1);
    } else if (at_once || foreign_waiters_ > 0) {
      end_connection(fd_);
    }
  }
  while (event* const edge = woken.pop()) resume(*static_cast<agent*>(edge->waiter));
  if (path) path->remove();
  if (last_fd >= 0) kernel::close(last_fd);
  return true;
}

void socket::abandon() noexcept {
  close();
  {
    const std::lock_guard lock(lock_);
    orphaned_ = true;
    if (in_use()) return;
  }
  delete this;
}

int socket::release() {
  event_list nobody;
  const std::lock_guard lock(lock_);
  if (in_use()) throw usage_error("fd " + std::to_string(fd_) + " is in use and cannot be released");
  if (source_) loop_->close(*std::exchange(source_, nullptr), nobody);
  closed_ = true;
  return std::exchange(fd_, -1);
}

int socket::close_and_keep() {
  int kept = 0;
  if (close(false, &kept)) return kept;
  if (kept == 0) return -1;
  if (kept == -EBUSY)
    throw usage_error("fd " + std::to_string(fd()) + ": a plain thread waits there, so it cannot be released");
  throw std::system_error(-kept, std::system_category(), "ulexite: releasing fd " + std::to_string(fd()));
}

int socket::fd() const noexcept {
  const std::lock_guard lock(lock_);
  return closed_ ? -1 : fd_;
}

void socket::set_peer(const net::endpoint& peer) noexcept {
  const std::lock_guard lock(lock_);
  peer_ = peer;
}

net::endpoint socket::peer() const noexcept {
  const std::lock_guard lock(lock_);
  return peer_;
}

// ---- waiting ----

wait_mode waiting_for_fd(int fd, direction side) noexcept {
  const wait_kind kind = side == direction::read ? wait_kind::read : wait_kind::write;
  return waiting_for(kind, reinterpret_cast<const void*>(static_cast<std::intptr_t>(fd)), cancellable::yes);
}

runtime_state* calling_runtime() noexcept {
  scheduler* const here = this_scheduler();
  return here ? &here->runtime() : nullptr;
}

// The error with which a failed system call ends the operation. None: try again. After a close it is always
// bad_file_descriptor, because the shutdown of close may cause other errors.
std::error_code socket::after_failure(int number, direction side, std::int64_t deadline) {
  if (number == EINTR) return {};
  const bool blocked = number == EAGAIN || number == EWOULDBLOCK || number == EINPROGRESS || number == EALREADY;
  const std::error_code error = blocked ? wait(side, deadline) : std::error_code(number, std::system_category());
  return is_open() ? error : closed_error();
}

std::error_code socket::wait(direction side, std::int64_t deadline) {
  if (deadline == never_wait) return std::make_error_code(std::errc::resource_unavailable_try_again);
  check_may_wait(this_agent(), side == direction::read ? wait_kind::read : wait_kind::write);
  runtime_state* const here = calling_runtime();
  if (!here) return wait_as_guest(side, deadline);
  if (const auto error = register_in(here->loop)) return error;
  if (loop_ != here->loop) return wait_as_guest(side, deadline);
  if (shared_) {
    bool had_it;
    const std::error_code error = take_turn(side, deadline, had_it);
    if (error || !had_it) return error;
  }
  return wait_for_edge(side, deadline);
}

// The order is: prepare the word, arm, suspend. From the prepare on, the edge may claim the wait, even before the fiber
// has left its stack. Then the claim is early, the commit after the switch fails, and the fiber continues without a
// sleep. So no edge between arm and suspend is lost. If arm says that the source is ready, it has not taken the event.
// Then no thread can have claimed the word, and the wait is retracted. After a time-out or a cancellation the source
// may still hold the event, so it is taken back before its frame ends. An edge or a close releases the event before it
// claims. If its claim fails or is early, an edge stays remembered in the source.
std::error_code socket::wait_for_edge(direction side, std::int64_t deadline) noexcept {
  agent& self = this_agent();
  event edge;
  bind_event<wake_reason::notified>(edge, self);
  self.word.prepare();
  if (!arm(side, edge) && self.word.retract()) return {};
  const wake_reason reason = suspend_prepared(self, waiting_for_fd(fd_, side), deadline);
  if (reason == wake_reason::notified) return {};
  disarm(side, edge);
  if (reason == wake_reason::timed_out) return std::make_error_code(std::errc::timed_out);
  return stop_cause(self);
}

// A guest waits beside the source, so it gives the turn of a shared socket to one that needs it.
std::error_code socket::wait_as_guest(direction side, std::int64_t deadline) noexcept {
  agent* next = nullptr;
  {
    const std::lock_guard lock(lock_);
    if (closed_) return {};
    ++foreign_waiters_;
    if (shared_ && user_of(side) == &this_agent()) {
      ++shared_->passing;
      next = give_turn(side);
    }
  }
  if (next) resume(*next);
  const std::error_code error = wait_without_source(fd_, side, deadline);
  const std::lock_guard lock(lock_);
  --foreign_waiters_;
  return error;
}

// Opens the source at the first wait. The lock ensures that reader and writer open only one, at the cost of a system
// call under the lock.
std::error_code socket::register_in(const std::shared_ptr<event_loop>& loop) noexcept try {
  const std::lock_guard lock(lock_);
  if (loop_ || closed_) return {};
  source_ = &loop->open(fd_);
  loop_ = loop;
  return {};
} catch (const std::system_error& refused) {
  return refused.code();
} catch (const std::bad_alloc&) {
  return std::make_error_code(std::errc::not_enough_memory);
}

// Only fibers wait for edges.
bool socket::nothing_to_read() const noexcept { return received_.nothing_to_read() && calling_runtime(); }

}  // namespace ulexite::detail
