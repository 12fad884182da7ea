#pragma once

// A recording of the last events of one worker, of 16 bytes each. One thread writes at a time, the worker's. Any thread
// may read at any time. It omits events that are overwritten during the read.
//
// State, in ring_, where a debugger finds it too
//   next    the number of events written so far. Written by the worker.
//   words   two for each event: its time and its kind.
//
// Pairings
//   A  add stores next, release, when the event is written  ->  read loads it, acquire: it sees the event.
//   B  add stores `next` for the event before, fences (release), then stores the words  ->  read copies the words,
//      fences (acquire), then loads `next`. It omits the overwritten events, and one more, because that may be half
//      written.

#include <ulexite/runtime/task/debug_table.hpp>
#include <ulexite/runtime/trace/run_times.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ulexite::detail {

// The same order is in tools/gdb/ulexite_layout.py.
enum class trace_kind : std::uint8_t {
  dispatch,  // value: the fiber's number, 0 for a job; detail: how the last one left
  left,      // for the worker's own stack; detail: as above
  place,     // value: of the spawn of the fiber that was dispatched last; detail: the bits above those 48
  name,      // value: six bytes of its name; detail: which six
  wake,      // value: the number of the fiber that was woken
  park,      // the worker goes to sleep
  unpark,
  steal,
  queue,       // value: the number of runnables that wait
  span_begin,  // value: the address of the name
  span_end,
  spawn,  // value: the number of the fiber that was spawned
};

// How a fiber left its worker, in a byte.
struct departure_note {
  static constexpr std::uint8_t nothing = 0, waits = 0x40, yields = 0x80, ended = 0xc0, which = 0xc0;
  // waits: the kind of the wait in the lower bits
};

struct trace_event {
  std::uint64_t ticks;
  std::uint64_t value;  // 48 bits
  trace_kind kind;
  std::uint8_t detail;
};

class recorder {
 public:
  // Keeps the last `events` events of that worker, and the times. With 0 events only the times. Made after
  // measure_clock. Throws std::bad_alloc.
  recorder(std::size_t worker, std::size_t events, run_times& times)
      : times(times), words_(events == 0 ? nullptr : new std::atomic<std::uint64_t>[2 * std::bit_ceil(events)]) {
    ring_.words = words_.get();
    ring_.mask = events == 0 ? 0 : std::bit_ceil(events) - 1;
    ring_.worker = worker;
    ring_.scale = clock_scale();
    if (words_) enter_in_debug_table(ring_);
  }
  ~recorder() {
    if (words_) remove_from_debug_table(ring_);
  }
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  // Whether it is as large as a recorder made for this number of events.
  [[nodiscard]] bool holds(std::size_t events) const noexcept { return ring_.mask + 1 == std::bit_ceil(events); }

  // Called by the worker. One event is two words: the time, and value, kind and detail in one. An index is never reset,
  // so a reader sees how many events were overwritten.
  void add(std::uint64_t ticks, trace_kind kind, std::uint64_t value = 0, std::uint8_t detail = 0) noexcept {
    if (!ring_.words) return;
    const std::uint64_t number = ring_.next.load(std::memory_order_relaxed);  // this thread's
    const std::uint64_t word = value << 16 | static_cast<std::uint64_t>(kind) << 8 | detail;
    auto* const at = &ring_.words[2 * (number & ring_.mask)];
    std::atomic_thread_fence(std::memory_order_release);      // B
    at[0].store(ticks, std::memory_order_relaxed);            // B, published by A
    at[1].store(word, std::memory_order_relaxed);             // B, published by A
    ring_.next.store(number + 1, std::memory_order_release);  // A
  }

  // The events, oldest first. Any thread. Throws std::bad_alloc.
  [[nodiscard]] std::vector<trace_event> read() const {
    const std::uint64_t end = ring_.next.load(std::memory_order_acquire);  // A
    const std::uint64_t begin = end > ring_.mask ? end - ring_.mask - 1 : 0;
    std::vector<trace_event> events;
    events.reserve(end - begin);
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto* const at = &ring_.words[2 * (i & ring_.mask)];
      const std::uint64_t ticks = at[0].load(std::memory_order_relaxed);  // A, B
      const std::uint64_t word = at[1].load(std::memory_order_relaxed);   // A, B
      events.push_back({ticks, word >> 16, static_cast<trace_kind>(word >> 8 & 0xff), static_cast<std::uint8_t>(word)});
    }
    std::atomic_thread_fence(std::memory_order_acquire);                   // B
    const std::uint64_t now = ring_.next.load(std::memory_order_relaxed);  // B, ordered by the fence
    const std::uint64_t oldest = now > ring_.mask ? now - ring_.mask : 0;  // the one before may be half written
    if (oldest > begin)
      events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(std::min(oldest, end) - begin));
    return events;
  }

  run_times& times;

 private:
  const std::unique_ptr<std::atomic<std::uint64_t>[]> words_;  // State: see words above
  recorder_ring ring_;
};

// The recording of all workers of a runtime.
//
// State
//   recording   a trace, or only times. Written with the mutex held; a hint for threads that make fibers runnable.
struct trace_state {
  std::mutex mutex;  // guards the rest
  bool on = false;
  bool measured = false;  // the program wants the times, always
  bool probed = false;    // a tool uses the probes; written by the monitor only
  std::atomic<bool> recording{false};
  std::vector<std::unique_ptr<run_times>> times;     // one for each worker, if some were ever measured
  std::vector<std::unique_ptr<recorder>> measurers;  // of the times only
  std::vector<std::unique_ptr<recorder>> recorders;  // of all traces, the last one's at the end, one for each worker
  std::uint64_t first_ticks = 0;                     // at the start of the last one
  std::int64_t first_time = 0;
  std::uint64_t last_ticks = 0;  // at its end, unless `on`

  // Whether a thread that makes a fiber runnable notes the time. Any thread.
  [[nodiscard]] bool is_recording() const noexcept {
    return recording.load(std::memory_order_acquire);  // pairs with update_recording: it sees the clock measured
  }
};

}  // namespace ulexite::detail
