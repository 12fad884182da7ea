#pragma once

#include <ulexite/base/standard.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

namespace ulexite {

// The action of a runtime that has found a deadlock of its fibers.
enum class deadlock_action {
  report,  // report on stderr, in the format of runtime::dump; the fibers stay as they are
  fail,    // report, then ask every fiber to stop; run() throws std::system_error with errc::deadlock
  ignore,
};

// An exception that left a fiber and that get() did not take; see runtime_options::on_unhandled_exception.
struct unhandled_exception {
  std::exception_ptr exception{};  // what was thrown
  std::string_view fiber_name{};   // empty: none. Valid during the call
  std::uint64_t fiber_id = 0;      // 0: the thread of an isolated_context
  const char* file = nullptr;      // of the spawn; null: unknown, see `code`
  std::uint32_t line = 0;          // of the spawn
  const void* code = nullptr;      // the address of the call that spawned it, or null
};

// The settings of a runtime.
struct runtime_options {
  // The largest number of worker threads. 0: the value of the environment variable ULEXITE_THREADS. Without this
  // variable: the number of processors that affinity and the quotas of the control group and its ancestors allow. The
  // runtime adapts to a change of the quota within a minute. Threads start as work appears. If the system refuses a
  // thread, the runtime continues with its existing threads, if it has any.
  std::size_t threads = 0;
  // The largest number of worker threads for runtime::resize. If it is less than `threads`, or 0, it is `threads`.
  std::size_t max_threads = 0;
  // Bytes of a fiber's stack, rounded up to a power of two of at least 16 KiB. This is address space: memory is
  // committed on first touch. 0: 256 KiB.
  std::size_t stack_size = 256 * 1024;
  // A fiber that has waited for this long gives back the memory below its stack pointer, which deeper calls have
  // touched. The monitor does this once in each such wait, in portions of a millisecond, at most 1.5 times this long
  // after the wait began. Deep calls later fault the pages in again, so use less than ten seconds only in tests. 0:
  // never. It needs Linux's membarrier.
  std::chrono::milliseconds trim_stacks_after{60'000};
  // The largest number of live fibers, with the main fiber; a spawn above it throws errc::limit_reached. 0: limited by
  // memory only.
  std::size_t max_fibers = 0;
  // The largest number of threads in the pool behind blocking(); further calls wait in a queue. At least 1. Threads
  // that take over workers, in block_in_place and in a write to a file that lasts, do not count.
  std::size_t blocking_threads = 64;
  // The time without work after which a thread of the pool ends.
  std::chrono::milliseconds blocking_keep_alive{10'000};
  // Called with an exception that left a fiber and that get() did not take. The worker that ends the fiber, or the
  // thread that drops its handle, calls it. It must not throw. Default: a report on stderr, then std::terminate.
  std::function<void(const unhandled_exception& what)> on_unhandled_exception{};
  // The action on a deadlock. One kind: all fibers wait for ever. Then no fiber can run, no timer, descriptor or call
  // can end a wait, and the process has no thread that could. The other kind: some fibers wait in a circle for mutexes
  // and for each other's ends. The runtime checks when nothing has happened for some tenths of a second, then for four
  // times as long, and so on, and reports once per such pause. So it reports no circle while anything ticks. While
  // another fiber could end a circle by a request to stop, `fail` only reports it; threads outside do not count. A wait
  // for a mutex does not end on a request to stop, so with `fail` such a runtime still cannot end.
  deadlock_action on_deadlock = deadlock_action::report;
  // At this signal the runtime writes a dump (runtime::dump) to stderr, or appends it to the file that the environment
  // variable ULEXITE_DUMP names. If that name ends in .json, the dump is JSON (runtime::dump_json). 0: no signal, or
  // SIGQUIT if the environment has ULEXITE_DUMP. It costs a thread. No signal of a fault, such as SIGSEGV.
  int dump_signal = 0;
  // A worker that runs the same fiber for this long is reported, once each time: the fiber, and its backtrace. For this
  // the worker's thread gets SIGURG, unless the program handles that signal. So a system call in which the thread waits
  // may return early. 0: no reports, because a fiber may have good reason to compute for long. But if the environment
  // has ULEXITE_DUMP, 0 means ten seconds, and the report goes to that file.
  std::chrono::milliseconds stuck_after{0};
  // Measures how long fibers wait for a worker and then run: see runtime::times. It costs some 130 instructions per
  // dispatch. ULEXITE_MEASURE=1 in the environment has the same effect.
  bool measure = false;
  // Called on each worker thread at its start and its end, with the worker's number. With block_in_place, and with a
  // write to a file that lasts, a thread passes its number to another thread. The start of the other thread may be
  // called before the stop of this one. The functions may take long, and may wait for a fiber as any plain thread may.
  // The fiber runs on another worker, so not every worker may wait at the same time. An exception calls std::terminate.
  std::function<void(std::size_t worker)> on_thread_start{};
  std::function<void(std::size_t worker)> on_thread_stop{};  // see on_thread_start
  // Called on a worker that has nothing to do. It must call sleep(data) exactly once, which returns when there is work.
  // It is for collectors that do not have to stop a sleeping thread. It must not wait and must not throw.
  std::function<void(void (*sleep)(void* data), void* data)> on_thread_idle{};
  // As on_thread_start and on_thread_stop, for the threads of the pool behind blocking() and block_in_place. These
  // threads start and end as needed.
  std::function<void()> on_blocking_thread_start{};
  std::function<void()> on_blocking_thread_stop{};  // see on_blocking_thread_start
};

}  // namespace ulexite
