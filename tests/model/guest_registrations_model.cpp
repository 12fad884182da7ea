// A descriptor with two sources under Relacy: the text that ships, without the kernel, on a libevent that registers the
// descriptor once. The owner reads nothing, registers, and waits. Meanwhile a guest registers and removes its source,
// and the descriptor becomes ready. The owner learns of this, although the guest may have had the edge.
//
// MUTANT: not_counted       an owner does not ask whether it was alone
//   evloop/event_loop.cpp: if (!state_->guests.was_alone(guests)) => if (source.is_guest)
// MUTANT: seen_after        it asks only after its registration, and the guest has gone
//   evloop/guest_registrations.hpp: return seen_before % one_begun == 0 && seen() == seen_before; => return seen_before < one_begun << 31 && seen() % one_begun == 0;
// MUTANT: seen_before       it asks only before its registration, and the guest has come
//   evloop/guest_registrations.hpp: return seen_before % one_begun == 0 && seen() == seen_before; => return seen_before % one_begun == 0;
// MUTANT: begun_not_counted the guest has come and gone between both questions
//   evloop/guest_registrations.hpp: word_.fetch_add(one_begun + one_present, => word_.fetch_add(one_present,
// MUTANT: begins_late       a guest begins after its registration
//   evloop/event_loop.cpp: if (source.is_guest) state_->guests.begin(); =>
//   evloop/event_loop.cpp: perturb();\n    if (!state_->guests => if (source.is_guest) state_->guests.begin();\n    if (!state_->guests
// MUTANT: ends_early        a guest ends before the removal
//   evloop/event_loop.cpp: source.status.close(woken);\n => source.status.close(woken);\n  if (source.is_guest) state_->guests.end();\n
//   evloop/event_loop.cpp: event_del(&source.registration);\n  }\n  if (source.is_guest) state_->guests.end(); => event_del(&source.registration);\n  }

#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "relacy_library.hpp"

enum class mutation { none, not_counted, seen_after, seen_before, begun_not_counted, begins_late, ends_early };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders;

// One descriptor, with the registrations of its sources under libevent's lock.
struct kernel {
  model::relacy_mutex lock;
  event* registered[2] = {};
  event_callback_fn callback = nullptr;
  bool readable = false;
  bool edge = false;
};
kernel* the_kernel = nullptr;  // of the schedule

namespace model {
inline ssize_t write_eventfd(int, const void*, std::size_t size) { return static_cast<ssize_t>(size); }
}  // namespace model

#include "relacy_agents.hpp"
#include "relacy_loop.hpp"

constexpr int descriptor = 7;  // the loop's own have large numbers

int event_assign(event* made, event_base*, evutil_socket_t fd, short, event_callback_fn callback, void* source) {
  made->ev_fd = fd;
  made->ev_evcallback.evcb_arg = source;
  if (fd == descriptor) the_kernel->callback = callback;
  return 0;
}
// Only the first registration goes to the kernel, which reports the readiness of this moment.
int event_add(event* added, const timeval*) {
  if (added->ev_fd != descriptor) return 0;
  const std::unique_lock lock(the_kernel->lock);
  auto& all = the_kernel->registered;
  const bool first = !all[0] && !all[1];
  if (first) the_kernel->edge = the_kernel->readable;
  *std::find(std::begin(all), std::end(all), nullptr) = added;
  return 0;
}
int event_del(event* removed) {
  const std::unique_lock lock(the_kernel->lock);
  auto& all = the_kernel->registered;
  *std::find(std::begin(all), std::end(all), removed) = nullptr;
  if (!all[0] && !all[1]) the_kernel->edge = false;
  return 0;
}
// Fetches edges without the lock that it has for their delivery.
int event_base_loop(event_base*, int) {
  {
    const std::unique_lock lock(the_kernel->lock);
    if (!the_kernel->edge) return 0;
    the_kernel->edge = false;
  }
  const std::unique_lock lock(the_kernel->lock);
  for (event* each : the_kernel->registered)
    if (each) the_kernel->callback(descriptor, EV_READ, each->ev_evcallback.evcb_arg);
  return 0;
}

// Thread 0 turns the loop, 1 is the guest, 2 the owner; 3 makes the descriptor ready.
struct the_owner_learns_of_readiness : rl::test_suite<the_owner_learns_of_readiness, 4> {
  kernel simulated;
  std::optional<ulexite::detail::event_loop> loop;
  struct waiting : ulexite::detail::event {
    bool claimed = false;
  } owner;
  bool found = false;

  void before() {
    the_kernel = &simulated;
    loop.emplace(1);
    owner.claim = [](ulexite::detail::event& self) noexcept { return static_cast<waiting&>(self).claimed = true; };
  }
  bool readable() {
    const std::unique_lock lock(simulated.lock);
    return simulated.readable;
  }
  // A pause of random length, because others open a source first.
  void linger() {
    for (unsigned i = rl::rand(12); i > 0; --i) static_cast<void>(readable());
  }
  void turn() {
    ulexite::detail::event_list ready;
    loop->poll(ready);
  }
  void thread(unsigned id) {
    switch (id) {
      case 0:
        for (int i = 0; i < 10; ++i) turn();
        break;
      case 1: {
        ulexite::detail::event_list nobody;
        loop->close(loop->open(descriptor, ulexite::detail::registrant::guest), nobody);
        break;
      }
      case 2: {
        linger();
        found = readable();
        if (found) break;
        ulexite::detail::fd_source& source = loop->open(descriptor);
        while (!found && !loop->arm(source, ulexite::detail::direction::read, owner)) found = readable();
        break;
      }
      default: {
        linger();
        const std::unique_lock lock(simulated.lock);
        simulated.readable = true;
        simulated.edge = simulated.registered[0] || simulated.registered[1];
      }
    }
  }
  void after() {
    turn();
    RL_ASSERT(found || owner.claimed);
  }
};

int main() { return model::holds<the_owner_learns_of_readiness>(300'000) ? 0 : 1; }
