#include <ulexite/base/error.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/net/fds_wait.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::detail {
namespace {

using net::fd_interest;
using net::interest;

bool has(interest set, interest one) noexcept { return (set & one) != interest::none; }

// Asks the kernel about the descriptors, without a wait or within a time.
class poll_query {
 public:
  explicit poll_query(std::span<fd_interest> fds) : fds_(fds), queries_(fds.size()) {
    for (std::size_t i = 0; i < fds.size(); ++i) {
      short events = 0;
      if (has(fds[i].wanted, interest::read)) events |= POLLIN | POLLRDHUP;
      if (has(fds[i].wanted, interest::write)) events |= POLLOUT;
      queries_[i] = {events ? fds[i].fd : -1, events, 0};
    }
  }

  // With null it waits without limit.
  std::error_code ask(const timespec* patience) noexcept {
    auto* const network = network_of_run();
    const int result = network ? network->poll(queries_.data(), queries_.size())
                               : result_or_errno(::ppoll(queries_.data(), queries_.size(), patience, nullptr));
    ready_ = static_cast<std::size_t>(std::max(result, 0));
    if (result < 0 && result != -EINTR) return {-result, std::system_category()};
    return result > 0 ? note_answers() : std::error_code();
  }
  std::error_code ask() noexcept {
    const timespec at_once{};
    return ask(&at_once);
  }

  // The number of ready descriptors in the last answer.
  [[nodiscard]] std::size_t ready() const noexcept { return ready_; }

 private:
  std::error_code note_answers() noexcept {
    for (std::size_t i = 0; i < fds_.size(); ++i) {
      const short answer = queries_[i].revents;
      const bool broken = answer & (POLLERR | POLLHUP);
      if (answer & POLLNVAL) return {EBADF, std::system_category()};
      fds_[i].ready = interest::none;
      if (broken || (answer & (POLLIN | POLLRDHUP))) fds_[i].ready = fds_[i].ready | interest::read;
      if (broken || (answer & POLLOUT)) fds_[i].ready = fds_[i].ready | interest::write;
      fds_[i].ready = fds_[i].ready & fds_[i].wanted;
    }
    return {};
  }

  const std::span<fd_interest> fds_;
  std::vector<pollfd> queries_;
  std::size_t ready_ = 0;
};

// A plain thread's wait. The thread's own deadline limits it too, as in suspend. The thread of an isolated_context may
// be asked to stop, which does not end its system call. So it looks now and then.
std::error_code block_in_poll(poll_query& kernel, std::int64_t limit) noexcept {
  agent& self = this_agent();
  constexpr std::int64_t time_to_next_look = 50'000'000;
  const std::int64_t deadline = std::min(limit, self.deadline);
  const bool may_be_asked = spawn_runtime_of_thread() != nullptr;
  for (;;) {
    if (const auto cause = stop_cause(self)) return cause;
    timespec left{};
    const std::int64_t now = deadline == no_deadline && !may_be_asked ? 0 : now_ns();
    const std::int64_t until = may_be_asked ? std::min(deadline, now + time_to_next_look) : deadline;
    const std::int64_t time = std::max<std::int64_t>(until - now, 0);
    left.tv_sec = time / 1'000'000'000;
    left.tv_nsec = time % 1'000'000'000;
    const std::error_code error = kernel.ask(until == no_deadline ? nullptr : &left);
    if (error || kernel.ready() > 0) return error;
    if (time != 0) continue;
    if (deadline == limit) return std::make_error_code(std::errc::timed_out);
    self.expired = true;
    return errc::deadline_exceeded;
  }
}

// A descriptor's source for one wait, and the edges that end it.
class fd_watch {
 public:
  fd_watch(event_loop& loop, const fd_interest& watched)
      : loop_(&loop), source_(&loop.open(watched.fd, registrant::guest)) {
    wanted_ = {has(watched.wanted, interest::read), has(watched.wanted, interest::write)};
  }
  fd_watch(fd_watch&& other) noexcept
      : loop_(other.loop_), source_(std::exchange(other.source_, nullptr)), wanted_(other.wanted_) {}
  fd_watch& operator=(fd_watch&&) = delete;
  ~fd_watch() {
    event_list nobody;  // the only waiter is the caller
    if (source_) loop_->close(*source_, nobody);
  }

  // False: there was an edge already.
  bool arm(agent& waiter) noexcept {
    bool armed = true;
    for (const direction each : {direction::read, direction::write}) {
      if (!wanted_[index(each)]) continue;
      bind_event<wake_reason::notified>(edges_[index(each)], waiter);
      armed &= event_loop::arm(*source_, each, edges_[index(each)]);
    }
    return armed;
  }
  void disarm() noexcept {
    for (const direction each : {direction::read, direction::write})
      if (wanted_[index(each)]) event_loop::disarm(*source_, each, edges_[index(each)]);
  }

 private:
  static std::size_t index(direction side) noexcept { return static_cast<std::size_t>(side); }

  event_loop* loop_;
  fd_source* source_;
  std::array<bool, 2> wanted_;
  std::array<event, 2> edges_;
};

// A wait for one direction of one descriptor says so in dumps.
wait_mode waiting_for_any_of(std::span<const fd_interest> fds) noexcept {
  const interest first = fds.empty() ? interest::none : fds.front().wanted;
  if (fds.size() != 1 || (first != interest::read && first != interest::write))
    return waiting_for(wait_kind::descriptors, nullptr, cancellable::yes);
  return waiting_for_fd(fds.front().fd, first == interest::read ? direction::read : direction::write);
}

}  // namespace

// A fiber's wait, in steps. Asks the kernel before the registration, because ready descriptors need none, and files,
// which are always ready, cannot have one. A guest's source begins as ready. So the first wait ends at once, and the
// kernel is asked again. In a deterministic run nothing happens between the first question and the registration. The
// kernel is also asked after each edge, because that may be stale.
class watched_fds {
 public:
  watched_fds(std::span<fd_interest> fds, std::int64_t deadline) : fds_(fds), kernel_(fds), deadline_(deadline) {}

  // Whether the wait is over: one is ready, or there is an error.
  [[nodiscard]] bool is_over(std::error_code& error) noexcept {
    error = kernel_.ask();
    if (error || kernel_.ready() > 0) return true;
    if (deadline_ == no_deadline || deadline_ > now_ns()) return false;
    error = std::make_error_code(std::errc::timed_out);
    return true;
  }
  // Prepares the wait of `self`, which is_over() follows. True: it must suspend. The order of steps is that of
  // socket::wait_for_edge. An edge that ended no wait stays remembered in its source, and ends the next wait early,
  // once.
  [[nodiscard]] bool prepare(agent& self) {
    if (watches_.empty()) open(*calling_runtime()->loop);
    self.word.prepare();
    bool all_armed = true;
    for (fd_watch& each : watches_) all_armed &= each.arm(self);
    if (all_armed || !self.word.retract()) return true;
    disarm();
    return false;
  }
  // Called after the suspension.
  std::error_code resumed(const agent& self, wake_reason reason) noexcept {
    disarm();
    return reason == wake_reason::cancelled ? stop_cause(self) : std::error_code();
  }

 private:
  void open(event_loop& loop) {
    watches_.reserve(fds_.size());
    for (const fd_interest& each : fds_)
      if (each.wanted != interest::none) watches_.emplace_back(loop, each);
  }
  void disarm() noexcept {
    for (fd_watch& each : watches_) each.disarm();
  }

  const std::span<fd_interest> fds_;
  poll_query kernel_;
  const std::int64_t deadline_;
  std::vector<fd_watch> watches_;
};

namespace {

std::error_code wait_registered(std::span<fd_interest> fds, std::int64_t deadline) {
  agent& self = this_agent();
  const wait_mode mode = waiting_for_any_of(fds);
  std::error_code error;
  for (watched_fds watched(fds, deadline); !watched.is_over(error);) {
    check_may_wait(self, wait_mode::kind_of(mode.bits));
    if (!watched.prepare(self)) continue;
    if ((error = watched.resumed(self, suspend_prepared(self, mode, deadline)))) break;
  }
  return error;
}

// The error with which `attempt` ends, or that it throws.
template <class Attempt>
std::error_code outcome_of(std::span<const fd_interest> fds, Attempt&& attempt) {
  for (const fd_interest& each : fds)
    if (each.fd < 0 && each.wanted != interest::none)
      return {EBADF, std::system_category()};  // poll would ignore it, and wait for ever
  try {
    return attempt();
  } catch (const std::system_error& refused) {
    return refused.code();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

std::error_code wait_for_any_of(std::span<fd_interest> fds, std::int64_t deadline) {
  return outcome_of(fds, [&] {
    if (calling_runtime()) return wait_registered(fds, deadline);
    poll_query kernel(fds);
    return block_in_poll(kernel, deadline);
  });
}

std::string list_of(std::span<const fd_interest> fds) {
  std::string text;
  for (const fd_interest& each : fds) {
    if (!text.empty()) text += ", ";
    text += each.wanted == interest::write ? "write fd " : each.wanted == interest::read ? "read fd " : "use fd ";
    text += std::to_string(each.fd);
  }
  return text;
}

}  // namespace

// Its caller has checked that it may wait.
std::error_code wait_without_source(int fd, direction direction, std::int64_t deadline) noexcept {
  fd_interest only{fd, direction == direction::read ? interest::read : interest::write};
  return wait_for_any_of({&only, 1}, deadline);
}

std::size_t wait_for_fds(std::span<fd_interest> fds, std::int64_t deadline) {
  fds_wait here(fds, deadline);
  here.block();
  return here.result();
}

fds_wait::fds_wait(std::span<fd_interest> fds, std::int64_t deadline) noexcept
    : stackless_wait(waiting_for_any_of(fds)), fds_(fds), deadline_(deadline) {
  for (fd_interest& each : fds) each.ready = interest::none;
}

fds_wait::~fds_wait() = default;

void fds_wait::block() {
  throw_if_stopped();
  error_ = wait_for_any_of(fds_, deadline_);
  spend_budget();
}

bool fds_wait::ready(agent& self) {
  throw_if_stopped(self);
  error_ = outcome_of(fds_, [&] {
    watched_ = std::make_unique<watched_fds>(fds_, deadline_);
    return attempt_or_wait(self);
  });
  return !waits_ && goes_on(self);
}

// Sets waits_ if the wait has begun. Later calls throw nothing, because the timer and the sources are there.
std::error_code fds_wait::attempt_or_wait(agent& self) {
  std::error_code error;
  while (!watched_->is_over(error)) {
    check_may_wait(self, wait_mode::kind_of(mode().bits));
    if (needs_timer(self, deadline_)) provide_timer();
    if (!watched_->prepare(self)) continue;
    begin(self, nullptr, deadline_);
    waits_ = true;
    break;
  }
  return error;
}

bool fds_wait::resumed(agent& self) noexcept {
  if (!std::exchange(waits_, false)) return true;  // it has yielded
  error_ = watched_->resumed(self, end(self));
  if (!error_) error_ = attempt_or_wait(self);
  return !waits_;
}

std::size_t fds_wait::result() const {
  if (!error_)
    return static_cast<std::size_t>(
        std::ranges::count_if(fds_, [](const fd_interest& each) { return each.ready != interest::none; }));
  if (error_.category() == error_category()) throw_cancelled(error_);  // first: deadline_exceeded equals timed_out
  if (error_ == std::errc::timed_out) return 0;
  throw std::system_error(error_, "ulexite: waiting to " + list_of(fds_));
}

}  // namespace ulexite::detail
