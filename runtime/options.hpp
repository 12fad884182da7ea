#pragma once

#include <ulexite/base/standard.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>

namespace ulexite {

// What a runtime does when it has found its fibers in a deadlock.
enum class deadlock_action {
  report,  // on stderr, as runtime::dump tells it; then they wait on
  fail,    // the same, then every fiber is asked to stop, and run() throws std::system_error with errc::deadlock
  ignore,
};

// What a runtime is made with.
struct runtime_options {
  // Most worker threads. 0: the environment variable ULEXITE_THREADS, else the processors that affinity and the quotas
  // of the control group and of those above it allow when the runtime is made; a quota that is lowered later, or raised
  // again, is followed within a minute. They are started as work appears; a
  // refused one is done without as long as one runs.
  std::size_t threads = 0;
  // Most worker threads that runtime::resize may ask for. Less than `threads`, or 0: as many as those.
  std::size_t max_threads = 0;
  // Bytes of a fiber's stack, rounded up to a power of two. They are address space: memory is committed on first touch.
  std::size_t stack_size = 256 * 1024;
  // Most live fibers, the main fiber included; a spawn beyond throws errc::limit_reached. 0: bounded by memory only.
  std::size_t max_fibers = 0;
  // Most threads of the pool behind blocking(); calls beyond wait in a queue. At least 1. Those that
  // block_in_place lends to workers do not count.
  std::size_t blocking_threads = 64;
  // A thread of that pool ends when it had nothing to do for so long.
  std::chrono::milliseconds blocking_keep_alive{10'000};
  // Called with an exception that left a fiber and that get() did not take, by the worker that ends the fiber, or by
  // the thread that drops its handle. It must not throw. Default: a report on stderr, then std::terminate.
  std::function<void(std::string_view fiber_name, std::exception_ptr)> on_unhandled_exception{};
  // What to do when all fibers wait for each other for ever: no fiber can run, no timer, descriptor or call can end a
  // wait, and the process has no thread that could. Or when some fibers wait in a circle for mutexes and ends of
  // each other. It is looked for when nothing has happened for some tenths of a second, and told once a silence.
  // A fiber that waits for a mutex hears of no stop, so with fail such a runtime still cannot end.
  deadlock_action on_deadlock = deadlock_action::report;
  // At this signal the runtime is dumped (runtime::dump) to stderr, or appended to the file that the environment names in
  // ULEXITE_DUMP, as JSON (runtime::dump_json) if that name ends in .json. 0: no signal, or SIGQUIT if the environment has ULEXITE_DUMP. It costs a thread.
  int dump_signal = 0;
  // A worker that runs the same fiber for so long is reported, once each time: the fiber, and its backtrace. For that its
  // thread gets SIGURG, unless the program handles that, and so a system call in which it waits may return early. 0: not
  // at all, because a fiber may have good reason to compute for long; or ten seconds if the environment has
  // ULEXITE_DUMP, and then the report goes to that file.
  std::chrono::milliseconds stuck_after{0};
  // Measures how long fibers wait for a worker and then run: see runtime::times. It costs some 130 instructions a dispatch.
  // The environment variable ULEXITE_MEASURE has the same effect.
  bool measure = false;
  // Called on each worker thread, first and last, with the worker's number. With block_in_place a thread passes its
  // number to another, and the start there may be called before the stop here. They may take long, and wait for a fiber
  // as any plain thread may. The fiber runs on another worker, so not every worker may wait at the same time. They must
  // not throw: std::terminate.
  std::function<void(std::size_t worker)> on_thread_start{};
  std::function<void(std::size_t worker)> on_thread_stop{};  // see on_thread_start
  // Called on a worker that has nothing to do: it must call sleep(data) exactly once, which returns when there is
  // something. For collectors that let a thread which sleeps stand apart. It must not wait, nor throw.
  std::function<void(void (*sleep)(void* data), void* data)> on_thread_idle{};
  // As on_thread_start and on_thread_stop, for the threads of the pool behind blocking() and block_in_place, which come and go.
  std::function<void()> on_blocking_thread_start{};
  std::function<void()> on_blocking_thread_stop{};  // see on_blocking_thread_start
};

}  // namespace ulexite
