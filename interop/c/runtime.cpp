#include <ulexite/interop/c/handles.hpp>

#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/socket/no_sigpipe.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>

namespace ulexite::detail::c {
namespace {

thread_local const ulx_runtime* runtime_of_worker = nullptr;
// The calling thread is one of the pool. If it takes over a worker, thread_start was called for it already.
thread_local bool is_of_pool = false;
// What a main fiber has returned, until the caller of ulx_runtime_run has it.
struct main_result : in_embedders_memory {
  std::intptr_t value = 0;
};
// A runtime has its address only once it is made; its threads start later.
struct holder {
  ulx_runtime* made = nullptr;
};

// Out of line, so that no address of the thread's is kept over a hook, for which a program's check would blame it.
[[gnu::noinline]] void leave_runtime() noexcept { runtime_of_worker = nullptr; }

runtime_options to_options(const ulx_runtime_options& given, const ulx_hooks& hooks, std::shared_ptr<holder> self) {
  runtime_options options;
  options.threads = given.threads;
  options.max_threads = given.max_threads;
  options.stack_size = given.stack_size;
  options.max_fibers = given.max_fibers;
  if (given.blocking_threads != 0) options.blocking_threads = given.blocking_threads;
  options.dump_signal = given.dump_signal;
  if (given.trim_stacks_after != 0)
    options.trim_stacks_after = std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::nanoseconds(std::max<std::int64_t>(given.trim_stacks_after, 0)));
  switch (given.on_deadlock) {
    case ULX_DEADLOCK_REPORT: options.on_deadlock = deadlock_action::report; break;
    case ULX_DEADLOCK_FAIL: options.on_deadlock = deadlock_action::fail; break;
    case ULX_DEADLOCK_IGNORE: options.on_deadlock = deadlock_action::ignore; break;
    default:
      throw std::invalid_argument("ulx_runtime_options::on_deadlock is " + std::to_string(given.on_deadlock) +
                                  ", which is no ULX_DEADLOCK_...");
  }
  options.on_thread_start = [hooks, self](std::size_t) {
    runtime_of_worker = self->made;
    if (hooks.thread_start && !is_of_pool) hooks.thread_start(hooks.user, true);
  };
  options.on_thread_stop = [hooks](std::size_t) {
    if (hooks.thread_stop && !is_of_pool) hooks.thread_stop(hooks.user, true);
    leave_runtime();
  };
  if (hooks.thread_idle)
    options.on_thread_idle = [hooks](void (*sleep)(void*), void* data) { hooks.thread_idle(hooks.user, sleep, data); };
  options.on_blocking_thread_start = [hooks] {
    is_of_pool = true;
    if (hooks.thread_start) hooks.thread_start(hooks.user, false);
  };
  // A callback throws nothing, so this is the library's report of a fiber that has ended with a lock.
  options.on_unhandled_exception = [](const unhandled_exception& what) {
    try {
      std::rethrow_exception(what.exception);
    } catch (const usage_error& wrong) {
      warn("%s", wrong.what());
    }
  };
  if (hooks.thread_stop) options.on_blocking_thread_stop = [hooks] { hooks.thread_stop(hooks.user, false); };
  return options;
}

// Writes all of `text`. A descriptor in non-blocking mode may be full: then it waits. Returns the error, or 0.
int write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = detail::write_without_sigpipe([&] { return ::write(fd, text.data(), text.size()); });
    if (written == -EAGAIN) {
      net::wait_fd(fd, net::interest::write);
    } else if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written != -EINTR) {
      return static_cast<int>(-written);
    }
  }
  return 0;
}

// Returns a copy of the calling thread's variable, because a fiber may leave the thread.
[[gnu::noinline]] const ulx_runtime* of_worker() noexcept {
  const ulx_runtime* const* address = &runtime_of_worker;
  asm volatile("" : "+r"(address));
  return *address;
}

}  // namespace

const ulx_hooks* hooks_of_worker() noexcept {
  const ulx_runtime* const here = in_fiber() ? of_worker() : nullptr;
  return here ? &here->hooks : nullptr;
}

announced_fiber::announced_fiber() {
  const ulx_hooks* const hooks = hooks_of_worker();
  if (!hooks || !hooks->fiber_start) return;
  const no_suspend_scope stays("the hook fiber_start");
  hooks->fiber_start(hooks->user, this_fiber::id(), this_fiber::user_data());
}

announced_fiber::~announced_fiber() {
  const ulx_hooks* const hooks = hooks_of_worker();
  if (!hooks || !hooks->fiber_end) return;
  const no_suspend_scope stays("the hook fiber_end");
  hooks->fiber_end(hooks->user, this_fiber::id(), this_fiber::user_data());
}

}  // namespace ulexite::detail::c

using namespace ulexite;
using namespace ulexite::detail::c;

extern "C" {

ulx_runtime* ulx_runtime_new(const ulx_runtime_options* given) noexcept {
  return made([&] {
    const ulx_runtime_options options = read_struct(given, "ulx_runtime_options");
    const ulx_hooks hooks = read_struct(options.hooks, "ulx_hooks");
    const auto self = std::make_shared<holder>();
    auto fresh = std::make_unique<ulx_runtime>(to_options(options, hooks, self), hooks);
    use_memory_of(hooks);  // last, because it stays
    self->made = fresh.get();
    return fresh.release();
  });
}

int ulx_runtime_run(ulx_runtime* runtime, intptr_t (*main)(void*), void* data, intptr_t* result) noexcept {
  return guarded([&] {
    if (!main) throw usage_error("ulx_runtime_run without a function");
    std::unique_ptr<main_result> got;
    runtime->of.run([&got, main, data] {
      got = std::make_unique<main_result>();  // by the fiber: the caller may be no thread of the embedder's collector
      got->value = run_with_handle(main, data);
    });
    if (result) *result = got->value;
    return 0;
  });
}

void ulx_runtime_request_stop(ulx_runtime* runtime) noexcept {
  if (!refused_in_handler()) runtime->of.request_stop();
}

int ulx_runtime_resize(ulx_runtime* runtime, size_t threads) noexcept {
  return guarded([&] {
    runtime->of.resize(threads);
    return 0;
  });
}

int ulx_runtime_destroy(ulx_runtime* runtime, int how, size_t* abandoned) noexcept {
  return guarded([&] {
    if (!runtime) return 0;
    if (how < ULX_DRAIN || how > ULX_STOP)
      throw std::invalid_argument("ulx_runtime_destroy: " + std::to_string(how) + " is no way to end");
    if (detail::state_of(runtime->of).handle.running_main.load(std::memory_order_acquire))  // pairs with ~main_run
      throw usage_error("ulx_runtime_destroy during ulx_runtime_run; ulx_runtime_request_stop ends that");
    detail::check_may_wait(detail::this_agent(), detail::wait_kind::blocking);
    constexpr shutdown_mode modes[] = {shutdown_mode::drain, shutdown_mode::cancel, shutdown_mode::abandon};
    // The caller may be a fiber of another runtime, whose worker the fibers of this one may wait for.
    const std::size_t left = block_in_place([&] { return runtime->of.shutdown(modes[how]); });
    if (abandoned) *abandoned = left;
    delete runtime;
    return 0;
  });
}

ulx_runtime* ulx_runtime_here(void) noexcept { return in_fiber() ? const_cast<ulx_runtime*>(of_worker()) : nullptr; }

int ulx_stop_world(ulx_runtime* runtime, int64_t patience, void (*late)(void*, uint64_t), void* user) noexcept {
  return guarded([&] {
    try {
      auto stopped = std::make_unique<stopped_world>(runtime->of, std::chrono::nanoseconds(patience));
      runtime->stopped = std::move(stopped);
    } catch (const late_fibers& slow) {
      if (late)
        for (const std::uint64_t id : slow.ids()) late(user, id);
      return int{ULX_ETIMEDOUT};
    }
    return 0;
  });
}

int ulx_start_world(ulx_runtime* runtime) noexcept {
  return guarded([&] {
    if (!runtime->stopped) throw usage_error("ulx_start_world: the world of this runtime is not stopped");
    runtime->stopped.reset();
    return 0;
  });
}

int ulx_dump(ulx_runtime* runtime, int fd) noexcept {
  return guarded([&] {
    std::ostringstream text;
    runtime->of.dump(text);
    return write_whole(fd, std::move(text).str());
  });
}

int ulx_runtime_metrics(const ulx_runtime* runtime, ulx_metrics* into) noexcept {
  return guarded([&] {
    std::size_t size;
    std::memcpy(&size, into, sizeof size);
    if (size < sizeof size)
      throw std::invalid_argument("ulx_metrics::size is " + std::to_string(size) + ": set it with ULX_INIT");
    const runtime_metrics now = runtime->of.metrics();
    const ulx_metrics all{.size = size,
                          .workers = now.workers,
                          .workers_sleeping = now.workers_sleeping,
                          .fibers_live = now.fibers_live,
                          .fibers_spawned = now.fibers_spawned,
                          .fibers_ended = now.fibers_ended,
                          .dispatches = now.dispatches,
                          .steals = now.steals,
                          .parks = now.parks,
                          .wakes = now.wakes,
                          .polls = now.polls,
                          .events = now.events,
                          .blocking_threads = now.blocking_threads,
                          .stacks_refused = now.stacks_refused,
                          .workers_retaken = now.workers_retaken,
                          .lost_wakeups = now.lost_wakeups,
                          .stack_bytes_trimmed = now.stack_bytes_trimmed};
    std::memcpy(into, &all, std::min(size, sizeof all));
    return 0;
  });
}

int ulx_trace_start(ulx_runtime* runtime, size_t events) noexcept {
  return guarded([&] {
    trace_options options;
    if (events != 0) options.events_per_worker = events;
    runtime->of.start_trace(options);
    return 0;
  });
}

int ulx_trace_stop(ulx_runtime* runtime, int fd) noexcept {
  return guarded([&] {
    runtime->of.stop_trace();
    std::ostringstream text;
    runtime->of.write_trace(text);
    return write_whole(fd, std::move(text).str());
  });
}
}
