// State that only few fibers have: a name, a token of the requests to stop it, values of fiber_local.
//
// Pairings
//   A  task.hpp A.

#include <ulexite/base/error.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ulexite::detail {
namespace {

// Guard names and rare states against threads that read them from outside. Several, by the record's address, so that
// workers whose fibers end seldom wait for each other.
struct alignas(64) outside_guard {
  spin_lock lock;
};
constinit outside_guard guards[16];

spin_lock& guard_of(const fiber_identity& who) noexcept {
  return guards[reinterpret_cast<std::uintptr_t>(&who) / 128 % std::size(guards)].lock;
}

}  // namespace

// ---- the name ----

// The old name is freed after the lock is released: no reader uses it outside of the lock.
void task::replace_name(const char* with) noexcept {
  {
    const std::lock_guard lock(guard_of(*this));
    with = std::exchange(name, with);
  }
  delete[] with;
}

// The fiber may have ended, and its block may hold another one. The block stays mapped, and a name is only replaced
// with the lock held, so a name that is found there can be read. The number tells whether it is the right one.
// Sanitizers report the read of a block that is not in use.
__attribute__((no_sanitize("address", "thread"))) std::string name_of(const fiber_identity& who, std::uint64_t id) {
  const std::lock_guard lock(guard_of(who));
  const volatile fiber_identity& identity = who;
  const char* const name = identity.name;
  return name && identity.id == id ? std::string(name) : std::string();
}

// As name_of, for a caller that may not wait: it has stopped all threads, and one of them may hold the lock. Then there
// is no name.
__attribute__((no_sanitize("address", "thread"))) void copy_name(const fiber_identity& who, std::uint64_t id,
                                                                 char (&into)[32]) noexcept {
  const std::unique_lock lock(guard_of(who), std::try_to_lock);
  if (!lock) return;
  const volatile fiber_identity& identity = who;
  const char* const name = identity.name;
  for (std::size_t i = 0; name && identity.id == id && i + 1 < sizeof into && name[i]; ++i) into[i] = name[i];
}

// The copy is made before the lock is taken, and a tool that shows stacks gets the name too.
void task::set_name(std::string_view text) {
  char* const copy = new char[text.size() + 1];
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  replace_name(copy);
  mark_needs_cleanup();
  if (current_stack) name_context(*current_stack, *this);
}

// ---- requests to stop, and their token ----

// The request is made before the lock is taken, so a thread that asks for a token later finds it. The callbacks are
// called before the fiber is woken, so that it finds its token already stopped.
bool task::request_stop() noexcept {
  const yield_point at_exit;
  const bool first = agent().word.request_stop();
  run_stop_callbacks(stop_source());
  std_atomics::heavy_fence();  // wait_word.hpp C
  if (agent().word.cancel()) resume(agent());
  return first;
}

// The callbacks' objects are on the stack of an abandoned fiber, and no thread may call them from now on.
void task::forget_stop_callbacks() noexcept {
  rare_task_state* const made = rare_state_.load(std::memory_order_acquire);  // A
  if (!made) return;
  // Without the lock, because the destructor of a std::stop_callback waits for a call that is under way.
  made->runtime_stop.reset();
  made->strand_stop.reset();
  const std::lock_guard lock(lock_);
  made->stop = std::stop_source(std::nostopstate);
}

// A copy, because the callbacks are called without the lock.
std::stop_source task::stop_source() noexcept {
  const std::lock_guard lock(lock_);
  rare_task_state* const made = rare_state_.load(std::memory_order_relaxed);  // lock_ held
  return made ? made->stop : std::stop_source(std::nostopstate);
}

// As replace_name: no reader uses it outside of the lock.
void task::destroy_rare_state() noexcept {
  const rare_task_state* old;
  {
    const std::lock_guard lock(guard_of(*this));
    old = rare_state_.exchange(nullptr, std::memory_order_relaxed);  // no other refers to the task
  }
  delete old;
}

// As name_of. A collector needs the data also if a thread that it has stopped holds the lock. A holder that runs would
// release the lock soon. So after some tries the data are read without it, because nothing is destroyed meanwhile.
__attribute__((no_sanitize("address", "thread"))) void* task::data_for_outside(std::uint64_t of) const noexcept {
  std::unique_lock lock(guard_of(*this), std::defer_lock);
  for (int tries = 0; !lock.try_lock() && tries < 10'000; ++tries) {
  }
  const volatile fiber_identity& identity = *this;
  // No member of std::atomic, because sanitizers would check that.
  const volatile rare_task_state* const rare = *reinterpret_cast<rare_task_state* const volatile*>(&rare_state_);
  return rare && identity.id == of ? rare->user_data : nullptr;
}

// The values of fiber_local variables. Used by the fiber, and by the thread that destroys the task.
local_values& task::locals() { return rare_state().locals; }

// The fiber itself and a holder of the handle may both come here at the same time: one of the two states is kept.
rare_task_state& task::rare_state() {
  if (rare_task_state* const made = rare_state_.load(std::memory_order_acquire)) return *made;  // A
  // Made outside of the lock, which is a spin lock.
  auto fresh = std::make_unique<rare_task_state>(agent());
  const std::lock_guard lock(lock_);
  if (rare_task_state* const made = rare_state_.load(std::memory_order_relaxed)) return *made;  // lock_ held
  set(needs_cleanup);
  rare_state_.store(fresh.get(), std::memory_order_release);  // A
  return *fresh.release();
}

// The source is made when a token is first asked for, because few fibers have one. A stop of the runtime or of the
// strand is relayed to it from then on. A stop that was requested before is passed on here.
std::stop_token task::get_stop_token() {
  rare_task_state& mine = rare_state();
  std::stop_source source;
  {
    const std::lock_guard lock(lock_);
    if (!mine.stop.stop_possible()) {
      mine.stop = source;
      if (!has_ended()) relay_stops(mine, source);  // later the runtime may be destroyed
    }
    source = mine.stop;
  }
  if (agent().word.stop_requested()) run_stop_callbacks(source);
  return source.get_token();
}

std::stop_token this_stop_token() {
  task* const self = this_task();
  return self ? self->get_stop_token() : std::stop_token{};
}

// A job has no locals of its own; a stop callback uses the locals of the fiber that makes the request.
local_values& this_agents_locals() {
  agent& self = this_agent();
  switch (self.kind) {
    case agent_kind::fiber: return self.fiber().locals();
    case agent_kind::thread: return static_cast<thread_agent&>(self).locals;
    case agent_kind::job: break;
  }
  if (task* const in_a_stop_callback = this_task()) return in_a_stop_callback->locals();
  throw usage_error("a fiber_local was used in a job: only fibers and plain threads have values of their own");
}

}  // namespace ulexite::detail
