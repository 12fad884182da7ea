// The event loop on libevent. An owner registers its descriptor once for its life, a guest for one wait
// (guest_registrations.hpp); edge-triggered, in both directions.
// There is one eventfd for wake, and one timerfd for the deadlines (timers.hpp). Sandboxes may refuse these, and only
// then libevent's own timers and wakes are used: a timer may be milliseconds late, and a wake costs a system call more.
//
// State
//   wake_pending  a wake was called and no wait has returned since. Set by wake, cleared by wait as its last step.
//   opened        descriptors registered. A counter.
//   turns         the number of turns begun. Written by the turning thread, read by open. Where the order matters,
//                 libevent's lock gives it. A turn that fetches an edge of an old registration stored its number before
//                 the event_del of this registration took the lock. And the event_del was before the descriptor was
//                 opened again.
//
// Pairings
//   A  wake exchanges wake_pending to true  ->  wait exchanges it to false. Writes before the wake are visible after
//      the wait, even if the wake found the flag set and wrote no eventfd.
//
// No wake is lost. First case: a wake finds the flag clear. It sets the flag and writes the eventfd. Until a wait
// clears the flag, a wait that begins sees it and does not block. This holds even if a poll has consumed the edge. The
// write follows the setting of the flag, and the kernel orders the write before the poll's return. A wait that missed
// the flag had not consumed the edge, so the edge ends it. Second case: a wake finds the flag set. Then some wait has
// not cleared it yet. That wait ends by the first case, and clears the flag after this wake. It is "the present or the
// next wait". The write of a wake may follow after a wait has seen and cleared the flag. Then some later wait ends
// early, which is allowed.
//
// Checked by tests/model/event_loop_model.cpp.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/base/kernel.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/base/standard_descriptors.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/evloop/fd_pool.hpp>
#include <ulexite/evloop/guest_registrations.hpp>
#include <ulexite/evloop/libevent_setup.hpp>
#include <ulexite/evloop/owned_fd.hpp>
#include <ulexite/evloop/readiness.hpp>
#include <ulexite/evloop/timers.hpp>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace ulexite::detail {
namespace {

struct base_deleter {
  void operator()(event_base* base) const noexcept { event_base_free(base); }
};
using base_pointer = std::unique_ptr<event_base, base_deleter>;

struct config_deleter {
  void operator()(event_config* config) const noexcept { event_config_free(config); }
};

// Two flags are unwanted. EVENT_BASE_FLAG_PRECISE_TIMER sets a timerfd at each turn.
// EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST hides an event_add of another thread from a blocked thread. The user's
// environment could set both, so it is ignored.
base_pointer make_base() {
  set_up_libevent();
  const std::unique_ptr<event_config, config_deleter> config(event_config_new());
  if (!config) throw std::bad_alloc();
  event_config_require_features(config.get(), EV_FEATURE_ET);
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_IGNORE_ENV);
  errno = 0;
  base_pointer base(event_base_new_with_config(config.get()));
  if (!base) {
    throw std::system_error(errno ? errno : ENOTSUP, std::system_category(), "ulexite: creating an event base");
  }
  return base;
}

}  // namespace

// A registered descriptor.
class fd_source {
 public:
  fd_source* next = nullptr;  // in fd_pool
  event_loop::state* owner = nullptr;
  simulated_network* network = nullptr;  // the network of its descriptor, or null
  readiness status;
  struct ::event registration{};
  bool is_guest = false;
};

struct event_loop::state {
  explicit state(std::size_t shards);

  void watch_own(struct ::event& event, int fd);
  void turn(int flags, event_list& ready) noexcept;
  static void on_edge(evutil_socket_t fd, short what, void* source) noexcept;

  // The base is declared after the members that hold its events, so it is freed before them.
  timers deadlines;
  fd_pool<fd_source> pool;
  guest_registrations guests;
  owned_fd wakefd;
  struct ::event wake_registration{};
  struct ::event alarm_registration{}, substitute{};
  base_pointer base;
  short interest;                    // the events for which a descriptor is registered
  event_list* collecting = nullptr;  // the list to which on_edge adds claimed events; set while a thread turns the loop
  std::atomic<std::uint64_t> turns{0};
  std::atomic<std::size_t> opened{0};
  alignas(cache_line) std::atomic<bool> wake_pending{false};
};

event_loop::state::state(std::size_t shards)
    : deadlines(shards, substitute),
      wakefd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      base(make_base()),
      interest(EV_READ | EV_WRITE | EV_ET | EV_PERSIST) {
  // Without EV_CLOSED a reader must not wait after a short read; all kernels since 2.6.17 have it.
  if (event_base_get_features(base.get()) & EV_FEATURE_EARLY_CLOSE) interest |= EV_CLOSED;
  watch_own(wake_registration, wakefd.get());
  watch_own(substitute, -1);
  if (deadlines.descriptor() < 0) return;
  event_del(&substitute);  // perhaps for ever
  watch_own(alarm_registration, deadlines.descriptor());
}

// Registers a descriptor for one purpose: its edge ends a blocking turn. It is never read, because each write or expiry
// is a new edge anyway. Without a descriptor `event` ends a turn once it is active or late; a far time limit makes room
// for a nearer one.
void event_loop::state::watch_own(struct ::event& event, int fd) {
  const short what = fd < 0 ? 0 : EV_READ | EV_ET | EV_PERSIST;
  constexpr timeval far{1'000'000'000, 0};
  event_assign(&event, base.get(), fd, what, [](evutil_socket_t, short, void*) {}, nullptr);
  if (event_add(&event, fd < 0 ? &far : nullptr) != 0) {
    throw std::system_error(errno, std::system_category(), "ulexite: registering fd " + std::to_string(fd));
  }
}

// Always with EVLOOP_ONCE: otherwise EVLOOP_NONBLOCK asks the kernel again until nothing is ready.
void event_loop::state::turn(int flags, event_list& ready) noexcept {
  turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // owner-written
  const loop_thread_scope as_loop;
  collecting = &ready;
  if (event_base_loop(base.get(), EVLOOP_ONCE | flags) < 0) warn("the event loop failed with errno %d", errno);
  collecting = nullptr;
}

void event_loop::state::on_edge(evutil_socket_t, short what, void* argument) noexcept {
  auto& source = *static_cast<fd_source*>(argument);
  const state& loop = *source.owner;
  const std::uint64_t turn = loop.turns.load(std::memory_order_relaxed);  // owner-written
  source.status.fire(what & EV_READ, what & EV_WRITE, what & EV_CLOSED, turn, *loop.collecting);
}

// libevent offers no way to choose the numbers of its descriptors.
event_loop::event_loop(std::size_t shards) {
  const standard_descriptors_taken taken;
  state_ = std::make_unique<state>(shards);
}

event_loop::~event_loop() = default;

void event_loop::poll(event_list& ready) noexcept {
  state_->deadlines.fire(ready);
  state_->turn(EVLOOP_NONBLOCK, ready);
}

void event_loop::wait(event_list& ready) noexcept {
  const std::size_t before = ready.size();
  state_->deadlines.fire(ready);
  const bool nothing_yet =
      ready.size() == before && !state_->wake_pending.load(std::memory_order_relaxed);  // see above
  if (nothing_yet && state_->deadlines.begin_wait()) {
    perturb();
    state_->turn(EVLOOP_NO_EXIT_ON_EMPTY, ready);
    state_->deadlines.end_wait();
  } else {
    state_->turn(EVLOOP_NONBLOCK, ready);
  }
  state_->deadlines.fire(ready);
  state_->wake_pending.exchange(false, std::memory_order_acq_rel);  // A
}

void event_loop::fire_timers(event_list& ready) noexcept { state_->deadlines.fire(ready); }

void event_loop::wake() noexcept {
  if (state_->wake_pending.exchange(true, std::memory_order_acq_rel)) return;  // A
  perturb();
  const std::uint64_t one = 1;
  // The counter is never read: at one write per nanosecond it would take 584 years to fill up.
  if (::write(state_->wakefd.get(), &one, sizeof one) < 0) event_active(&state_->wake_registration, EV_READ, 0);
}

void event_loop::arm(timer_event& timer, std::int64_t deadline, std::size_t shard) noexcept {
  state_->deadlines.arm(timer, deadline, shard);
}

void event_loop::reserve_timers(std::size_t count) { state_->deadlines.reserve(count); }

bool event_loop::cancel(timer_event& timer) noexcept { return state_->deadlines.cancel(timer); }

std::int64_t event_loop::next_deadline() const noexcept { return state_->deadlines.next_deadline(); }

// A source that was not alone at its registration may get no edge for an earlier readiness. So it begins as ready, and
// the kernel is asked about the end of the stream. A guest asks it anyway.
fd_source& event_loop::open(int fd, registrant by) {
  const std::string attempt = "ulexite: registering fd ";
  if (controlled()) [[unlikely]]
    return open_simulated(fd);
  if (fd < 0)
    throw std::system_error(EBADF, std::system_category(), attempt + std::to_string(fd));  // libevent gives no error
  fd_source& source = state_->pool.take();
  if (!source.owner) source.owner = state_.get();  // once: a callback of its earlier registration may be reading it
  const std::uint64_t turn = state_->turns.load(std::memory_order_relaxed);  // ordered as said above
  source.status.open(fd, turn);
  event_assign(&source.registration, state_->base.get(), fd, state_->interest, state::on_edge, &source);
  state_->opened.fetch_add(1, std::memory_order_relaxed);  // counter
  source.is_guest = by == registrant::guest;
  if (source.is_guest) state_->guests.begin();
  const std::uint64_t guests = state_->guests.seen();
  event_list nobody;  // waits yet
  const loop_thread_scope as_loop(true);
  errno = 0;
  if (event_add(&source.registration, nullptr) == 0) {
    perturb();
    if (!state_->guests.was_alone(guests)) source.status.fire(true, true, by == registrant::owner, turn, nobody);
    return source;
  }
  const int error = errno ? errno : EINVAL;
  if (source.is_guest) state_->guests.end();
  state_->opened.fetch_sub(1, std::memory_order_relaxed);  // counter
  source.status.close(nobody);
  state_->pool.give_back(source);
  throw std::system_error(error, std::system_category(), attempt + std::to_string(fd));
}

fd_source& event_loop::open_simulated(int fd) {
  simulated_network* const network = network_of(fd);
  if (!network)
    throw std::system_error(ENOTSUP, std::system_category(),
                            "ulexite: fd " + std::to_string(fd) + " of the kernel in a deterministic run");
  fd_source& source = state_->pool.take();
  source.network = network;
  source.is_guest = false;
  source.status.open(fd, 0);
  state_->opened.fetch_add(1, std::memory_order_relaxed);  // counter
  network->watch(fd, source);
  return source;
}

void event_loop::fire(fd_source& source, bool readable, bool writable, bool hung_up, event_list& ready) noexcept {
  source.status.fire(readable, writable, hung_up, 1, ready);
}

void event_loop::close(fd_source& source, event_list& woken) noexcept {
  source.status.close(woken);
  perturb();
  if (simulated_network* const network = std::exchange(source.network, nullptr)) [[unlikely]] {
    network->unwatch(source);
  } else {
    const loop_thread_scope as_loop;
    event_del(&source.registration);
  }
  if (source.is_guest) state_->guests.end();
  state_->opened.fetch_sub(1, std::memory_order_relaxed);  // counter
  state_->pool.give_back(source);
}

bool event_loop::arm(fd_source& source, direction direction, event& event) noexcept {
  perturb();
  return source.status.arm(direction, event);
}

void event_loop::disarm(fd_source& source, direction direction, event& event) noexcept {
  source.status.disarm(direction, event);
}

std::size_t event_loop::registrations() const noexcept {
  return state_->opened.load(std::memory_order_relaxed) + state_->deadlines.armed();  // counter
}

}  // namespace ulexite::detail
