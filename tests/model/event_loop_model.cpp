// The wake of an event loop under Relacy: the text that ships, without libevent and the kernel. No wake is lost: a wait
// under way or else the next one returns, and sees what was written before the wake.
//
// MUTANT: a_not_released  a wait returns, and does not see what it was woken for
// MUTANT: a_not_acquired  the same from the other end
// MUTANT: flag_ignored    a wait blocks although a wake was called, of which a poll has consumed the edge
//   evloop/event_loop.cpp: ready.size() == before && !state_->wake_pending.load(std::memory_order_relaxed); => ready.size() == before;
// MUTANT: cleared_first   a wait clears the flag as its first step, and not as its last
//   evloop/event_loop.cpp: const std::size_t before = ready.size(); => const std::size_t before = ready.size(); state_->wake_pending.exchange(false, std::memory_order_acq_rel);
//   evloop/event_loop.cpp: state_->deadlines.fire(ready);\n  state_->wake_pending.exchange(false, std::memory_order_acq_rel);  // A => state_->deadlines.fire(ready);
// MUTANT: cleared_by_poll a poll clears the flag, as if it were a wait
//   evloop/event_loop.cpp: state_->turn(EVLOOP_NONBLOCK, ready);\n}\n\nvoid event_loop::wait => state_->wake_pending.exchange(false, std::memory_order_acq_rel);\n  state_->turn(EVLOOP_NONBLOCK, ready);\n}\n\nvoid event_loop::wait
// MUTANT: not_written     a wake relies on the flag
//   evloop/event_loop.cpp: const std::uint64_t one = 1; => return;\n  const std::uint64_t one = 1;

#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "relacy_library.hpp"

enum class mutation { none, a_not_released, a_not_acquired, flag_ignored, cleared_first, cleared_by_poll, not_written };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                       model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>;

// The eventfd, registered for edges: each write makes one, each turn of the loop consumes it.
struct kernel {
  model::relacy_mutex lock;
  model::relacy_condition_variable changed;
  bool edge = false;
};
kernel* the_kernel = nullptr;  // of the schedule

namespace model {
inline ssize_t write_eventfd(int, const void*, std::size_t size) {
  const std::unique_lock lock(the_kernel->lock);
  the_kernel->edge = true;
  the_kernel->changed.notify_all();
  return static_cast<ssize_t>(size);
}
}  // namespace model

#include "relacy_agents.hpp"
#include "relacy_loop.hpp"

// libevent, which knows of one descriptor.
int event_assign(event*, event_base*, evutil_socket_t, short, event_callback_fn, void*) { return 0; }
int event_add(event*, const timeval*) { return 0; }
int event_del(event*) { return 0; }
int event_base_loop(event_base*, int flags) {
  std::unique_lock lock(the_kernel->lock);
  while (!the_kernel->edge && !(flags & EVLOOP_NONBLOCK)) the_kernel->changed.wait(lock);
  the_kernel->edge = false;
  return 0;
}

// Thread 0 turns the loop until it has seen what the others post; now and then it polls before it waits.
struct no_wake_is_lost : rl::test_suite<no_wake_is_lost, 3> {
  static constexpr int posts = 2;  // by each

  kernel simulated;
  std::optional<ulexite::detail::event_loop> loop;
  model::relacy_atomic<int, model::orders, false> posted[2];

  void before() {
    the_kernel = &simulated;
    loop.emplace(1);
  }
  void thread(unsigned id) {
    if (id > 0) {
      for (int i = 1; i <= posts; ++i) {
        posted[id - 1].store(i, rl::mo_relaxed);
        loop->wake();
      }
      return;
    }
    while (posted[0].load(rl::mo_relaxed) + posted[1].load(rl::mo_relaxed) < 2 * posts) {
      ulexite::detail::event_list ready;
      if (rl::rand(2)) loop->poll(ready);
      loop->wait(ready);
    }
  }
};

int main() { return model::holds<no_wake_is_lost>(500'000) ? 0 : 1; }
