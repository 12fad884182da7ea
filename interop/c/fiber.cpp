#include <ulexite/interop/c/handles.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/fiber_local.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ulexite::detail::c {
namespace {

// A collector finds the argument here until the fiber's record has it.
void keep_alive(void* argument) noexcept { asm volatile("" : : "r"(argument) : "memory"); }

void drop(ulx_fiber* fiber) noexcept {
  if (fiber && fiber->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete fiber;  // pairs with itself
}

ulx_fiber* self() noexcept {
  const detail::task* const task = detail::this_task();
  const detail::rare_task_state* const rare = task ? task->rare_state_if_made() : nullptr;
  return rare ? static_cast<ulx_fiber*>(rare->c_handle) : nullptr;
}

void end(void* fiber) noexcept {
  static_cast<ulx_fiber*>(fiber)->ended.set();
  drop(static_cast<ulx_fiber*>(fiber));
}

// A fiber's own reference to its handle. Its destructor is the fiber's end for callers that wait: also if the function
// was never called.
using own_reference = std::unique_ptr<ulx_fiber, decltype([](ulx_fiber* fiber) { end(fiber); })>;

// The handle of the calling fiber in the C interface, while its function runs.
class with_handle {
 public:
  with_handle(own_reference fiber, void* data) : fiber_(std::move(fiber)) {
    detail::rare_task_state& mine = detail::this_task()->rare_state();
    mine.c_handle = fiber_.get();
    mine.end_c_handle = end;
    mine.user_data = data;
  }
  // The end of the reference is the last step: a caller that waits for it may then free the fiber's argument, and what
  // the destructors of its keys use.
  ~with_handle() {
    detail::task& mine = *detail::this_task();
    mine.begin_completion();
    mine.rare_state().c_handle = nullptr;  // made above
  }
  with_handle(const with_handle&) = delete;
  with_handle& operator=(const with_handle&) = delete;

 private:
  const own_reference fiber_;
};

// Lets other fibers use the task of ulx_runtime_run's fiber.
class reachable_main {
 public:
  explicit reachable_main(ulx_fiber& fiber) : fiber_(fiber), task_{*detail::this_task()} {
    fiber.main = &task_;  // no other thread has it yet
    fiber.id_of_main = task_.of.id;
  }
  ~reachable_main() {
    {
      const std::lock_guard lock(fiber_.guard);
      fiber_.main = nullptr;
    }
    const shield uninterrupted;
    task_.users.wait();
  }
  reachable_main(const reachable_main&) = delete;
  reachable_main& operator=(const reachable_main&) = delete;

 private:
  ulx_fiber& fiber_;
  main_task task_;
};

// Asks the fiber of ulx_runtime_run to stop. False if it has ended.
bool cancel_main(ulx_fiber& fiber) {
  main_task* main;
  {
    const std::lock_guard lock(fiber.guard);
    main = fiber.main;
    if (main) main->users.add();
  }
  if (!main) return false;
  const bool first = main->of.request_stop();
  main->users.done();
  return first;
}

// The task of a fiber; it stays as long as the caller has the handle. Null: the fiber of ulx_runtime_run.
detail::task* task_of(const ulx_fiber* fiber) noexcept {
  const std::lock_guard lock(fiber->guard);
  return detail::handle_access::task_if_any(fiber->handle);
}

struct deadline_state {
  std::int64_t deadline;
  bool expired;
};
deadline_state deadline_of(const detail::agent& agent) noexcept {
  return {.deadline = agent.deadline, .expired = agent.expired};
}
void put_back(detail::agent& agent, const deadline_state& before) noexcept {
  agent.deadline = before.deadline;
  agent.expired = before.expired;
}

std::uint64_t id_of(const ulx_fiber* fiber) noexcept {
  const detail::task* const task = task_of(fiber);
  return task ? task->id : fiber->id_of_main;
}

// Whether it is the fiber that called ulx_block_enter here: until ulx_block_leave it is a plain thread.
bool is_on_this_thread(const ulx_fiber* fiber) noexcept {
  const detail::agent& here = detail::this_agent();
  if (here.kind != detail::agent_kind::thread) return false;
  const detail::task* const mine = static_cast<const detail::thread_agent&>(here).handed_off_fiber;
  return mine && mine->id == id_of(fiber);
}

// What ulx_shield has put aside for the calling fiber or thread. Throws std::bad_alloc.
std::optional<deadline_state>& deadline_aside() {
  static auto& all =
      *new fiber_local<std::optional<deadline_state>>;  // stays: threads may run after static destructors
  return all.get();
}

// What a ulx_deadline has between push and pop.
struct pushed_deadline {
  deadline_state outer;
  bool is_nearer;  // else the outer one is in effect, and what it has done meanwhile stays
};
static_assert(sizeof(pushed_deadline) <= sizeof(ulx_deadline) && alignof(pushed_deadline) <= alignof(ulx_deadline));

// Spawns in the runtime or context of the options. A fiber calls `body`, because others may wait for what it does: only
// ULX_STOP drops it.
template <class F>
join_handle<> spawn_where(const ulx_spawn_options& given, F body, const void* caller, bool with_rare_state) {
  if (given.runtime && given.strand)
    throw std::invalid_argument("ulx_spawn_options: runtime and strand together; a strand is of one runtime");
  const detail::task_options options{.name = given.name ? given.name : "",
                                     .stack_size = given.stack_size,
                                     .where = detail::spawn_place(caller),
                                     .with_rare_state = with_rare_state};
  detail::awaited_call call{std::move(body)};
  if (given.strand) return detail::spawn_access::start(given.strand->of, options, std::move(call));
  if (given.runtime) return detail::spawn_access::start(given.runtime->of, options, std::move(call));
  return detail::spawn_in(detail::callers_runtime(), options, std::move(call));
}

}  // namespace

std::intptr_t run_with_handle(std::intptr_t (*main)(void*), void* data) {
  auto* const fiber = new ulx_fiber;
  fiber->references.store(1, std::memory_order_relaxed);  // no other thread has it yet
  const with_handle handle(own_reference(fiber), nullptr);
  const reachable_main reachable(*fiber);
  const announced_fiber announced;
  return main(data);
}

}  // namespace ulexite::detail::c

using namespace ulexite;
using namespace ulexite::detail::c;

extern "C" {

ulx_fiber* ulx_spawn(intptr_t (*function)(void*), void* argument, const ulx_spawn_options* given) noexcept {
  const void* const caller = __builtin_return_address(0);
  return made([&] {
    if (!function) throw usage_error("ulx_spawn without a function");
    const ulx_spawn_options options = read_struct(given, "ulx_spawn_options");
    auto fresh = std::make_unique<ulx_fiber>();
    ulx_fiber* const fiber = fresh.get();
    const detail::yield_point at_exit;
    std::optional<no_suspend_scope> stays;
    if (detail::controlled()) stays.emplace("ulx_spawn");  // a switch would let others wait for the lock
    const std::lock_guard lock(fiber->guard);              // the handle is complete when others read it
    fiber->handle = spawn_where(
        options,
        [fiber, own = own_reference(fiber), function, argument, data = options.data]() mutable {
          const with_handle handle(std::move(own), data);
          const announced_fiber announced;
          fiber->result = function(argument);
        },
        caller, true);
    keep_alive(argument);
    return fresh.release();
  });
}

int ulx_go(void (*function)(void*), void* argument, const ulx_spawn_options* given) noexcept {
  const void* const caller = __builtin_return_address(0);
  return guarded([&] {
    if (!function) throw usage_error("ulx_go without a function");
    const ulx_spawn_options options = read_struct(given, "ulx_spawn_options");
    const auto plain = [function, argument] {
      const announced_fiber announced;
      function(argument);
    };
    if (options.data) {
      spawn_where(
          options,
          [plain, data = options.data] {
            this_fiber::set_user_data(data);
            plain();
          },
          caller, true)
          .detach();
    } else {
      spawn_where(options, plain, caller, false).detach();
    }
    keep_alive(argument);
    return 0;
  });
}

int ulx_join(ulx_fiber* fiber, int64_t deadline, intptr_t* result) noexcept {
  return guarded([&] {
    if (fiber == self() || is_on_this_thread(fiber)) throw usage_error("ulx_join by the fiber itself");
    if (!fiber->ended.wait_until(deadline, task_of(fiber))) return int{ULX_ETIMEDOUT};
    if (result) *result = fiber->result;
    return 0;
  });
}

bool ulx_done(const ulx_fiber* fiber) noexcept { return fiber->ended.is_set(); }

ulx_fiber* ulx_fiber_retain(ulx_fiber* fiber) noexcept {
  fiber->references.fetch_add(1, std::memory_order_relaxed);  // the caller has one already
  return fiber;
}

void ulx_fiber_release(ulx_fiber* fiber) noexcept {
  if (!refused_in_handler()) drop(fiber);
}

uint64_t ulx_fiber_id(const ulx_fiber* fiber) noexcept {
  if (refused_in_handler()) return 0;
  return id_of(fiber);
}

ulx_fiber* ulx_self(void) noexcept { return self(); }

uint64_t ulx_id(void) noexcept { return this_fiber::id(); }

void* ulx_data(void) noexcept { return this_fiber::user_data(); }

int ulx_set_data(void* data) noexcept {
  return guarded([&] {
    this_fiber::set_user_data(data);
    return 0;
  });
}

int ulx_set_name(const char* name) noexcept {
  return guarded([&] {
    if (!in_fiber()) throw usage_error("ulx_set_name outside of a fiber");
    this_fiber::set_name(name ? name : "");
    return 0;
  });
}

bool ulx_stack_bounds(const void** low, const void** high) noexcept {
  const detail::task* const task = detail::this_task();
  if (!task) return false;
  *low = task->current_stack->low;
  *high = task->current_stack->high;
  return true;
}

void ulx_yield(void) noexcept {
  if (!refused_in_handler()) this_fiber::yield();
}

int ulx_sleep(int64_t nanoseconds) noexcept {
  return guarded([&] {
    this_fiber::sleep_for(std::chrono::nanoseconds(nanoseconds));
    return 0;
  });
}

int ulx_sleep_until(int64_t deadline) noexcept {
  return guarded([&] {
    this_fiber::sleep_until(to_time(deadline));
    return 0;
  });
}

void ulx_safepoint(void) noexcept {
  if (!refused_in_handler()) this_fiber::yield_if_requested();
}

int ulx_park(int64_t deadline) noexcept {
  return guarded([&] {
    ulx_fiber* const mine = self();
    if (!mine) throw usage_error("ulx_park by what has no handle: a plain thread, or a fiber of ulx_go");
    detail::agent& agent = detail::this_agent();
    detail::throw_if_stopped(agent);
    mine->guard.lock();
    if (std::exchange(mine->permit, false)) {
      mine->guard.unlock();
      return 0;
    }
    detail::wait_node node(agent);
    return detail::wait_or_throw(mine->parked, mine->guard, node, detail::wait_kind::park, mine, deadline)
               ? 0
               : int{ULX_ETIMEDOUT};
  });
}

void ulx_unpark(ulx_fiber* fiber) noexcept {
  if (refused_in_handler()) return;
  detail::deferred_resume wake(detail::this_caller().worker);
  const std::lock_guard lock(fiber->guard);
  if (const detail::claimed_wait claimed = fiber->parked.claim_oldest()) {
    wake.who = claimed.who;
  } else {
    fiber->permit = true;
  }
}

bool ulx_cancel(ulx_fiber* fiber) noexcept {
  if (refused_in_handler()) return false;
  detail::task* const task = task_of(fiber);
  return task ? task->request_stop() : cancel_main(*fiber);
}

int ulx_check(void) noexcept {
  return guarded([] {
    this_fiber::check();
    return 0;
  });
}

bool ulx_shield(bool on) noexcept {
  if (refused_in_handler()) return on;
  detail::agent& agent = detail::this_agent();
  if (agent.shielded == on) return on;
  if (agent.kind != detail::agent_kind::job || agent.waits_forbidden)  // a job does not wait
    static_cast<void>(guarded([&] {
      if (std::optional<deadline_state>& aside = deadline_aside(); on) {
        aside = deadline_of(agent);
        put_back(agent, {.deadline = detail::no_deadline, .expired = false});
      } else if (aside) {
        put_back(agent, *std::exchange(aside, std::nullopt));
      }
      return 0;
    }));
  agent.shielded = on;
  return !on;
}

void ulx_deadline_push(ulx_deadline* outer, int64_t deadline) noexcept {
  if (refused_in_handler()) return;
  detail::agent& agent = detail::this_agent();
  deadline = to_limit(deadline);
  new (outer->opaque) pushed_deadline{.outer = deadline_of(agent), .is_nearer = deadline < agent.deadline};
  agent.deadline = std::min(agent.deadline, deadline);
}

void ulx_deadline_pop(const ulx_deadline* outer) noexcept {
  if (refused_in_handler()) return;
  const auto& pushed = *std::launder(reinterpret_cast<const pushed_deadline*>(outer->opaque));
  if (pushed.is_nearer) put_back(detail::this_agent(), pushed.outer);
}
}
