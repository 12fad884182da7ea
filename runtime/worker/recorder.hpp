#pragma once

// What happens on one worker, as it happens: the last so many events, of 16 bytes each. One thread writes at a time, the
// worker's; any thread may read at any time, and leaves out what is overwritten meanwhile.
//
// State
//   next_    how many events were written so far. Written by the worker.
//   words_   two for each event: the time, and what it was.
//
// Pairings
//   A  add stores next_, release, when the event is written  ->  read loads it, acquire: it sees the event.
//   B  add's store of the words comes after that of next_ for the event before  ->  read copies the words, fences
//      (acquire), then loads next_: what was overwritten meanwhile is left out, one more because it is being written.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ulexite::detail {

enum class trace_kind : std::uint8_t {
  dispatch,  // value: the fiber's number, 0 for a job; detail: how the last one left
  left,      // for the worker's own stack; detail: as above
  place,     // value: of the spawn of the fiber that was dispatched last
  name,      // value: six bytes of its name; detail: which six
  wake,      // value: the number of the fiber that was woken
  park,      // the worker goes to sleep
  unpark,
  steal,
  queue,       // value: runnables behind what runs
  span_begin,  // value: the address of the name
  span_end,
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

// The processor's clock, which a dispatch can afford.
inline std::uint64_t clock_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

class recorder {
 public:
  explicit recorder(std::size_t events)
      : mask_(std::bit_ceil(events) - 1), words_(new std::atomic<std::uint64_t>[2 * (mask_ + 1)]) {}

  // Is it as large as one made for that many?
  [[nodiscard]] bool holds(std::size_t events) const noexcept { return mask_ + 1 == std::bit_ceil(events); }

  // The worker.
  void add(trace_kind kind, std::uint64_t value = 0, std::uint8_t detail = 0) noexcept {
    const std::uint64_t number = next_.load(std::memory_order_relaxed);  // this thread's
    const std::uint64_t word = value << 16 | static_cast<std::uint64_t>(kind) << 8 | detail;
    auto* const at = &words_[2 * (number & mask_)];
    at[0].store(clock_ticks(), std::memory_order_relaxed);  // published by A
    at[1].store(word, std::memory_order_relaxed);           // published by A
    next_.store(number + 1, std::memory_order_release);     // A
  }

  // Any thread, oldest first. Throws std::bad_alloc.
  [[nodiscard]] std::vector<trace_event> read() const {
    const std::uint64_t end = next_.load(std::memory_order_acquire);  // A
    const std::uint64_t begin = end > mask_ ? end - mask_ - 1 : 0;
    std::vector<trace_event> events;
    events.reserve(end - begin);
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto* const at = &words_[2 * (i & mask_)];
      const std::uint64_t ticks = at[0].load(std::memory_order_relaxed);  // A, B
      const std::uint64_t word = at[1].load(std::memory_order_relaxed);   // A, B
      events.push_back({ticks, word >> 16, static_cast<trace_kind>(word >> 8 & 0xff), static_cast<std::uint8_t>(word)});
    }
    std::atomic_thread_fence(std::memory_order_acquire);              // B
    const std::uint64_t now = next_.load(std::memory_order_relaxed);  // B, ordered by the fence
    const std::uint64_t oldest = now > mask_ ? now - mask_ : 0;       // the one before may be half written
    if (oldest > begin)
      events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(std::min(oldest, end) - begin));
    return events;
  }

 private:
  const std::uint64_t mask_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::atomic<std::uint64_t> next_{0};
};

// The recording of all workers of a runtime.
struct trace_state {
  std::mutex turn;  // guards the rest
  bool on = false;
  std::vector<std::unique_ptr<recorder>> recorders;  // of all traces, the last one's at the end, one for each worker
  std::uint64_t first_ticks = 0;                     // at the start of the last one
  std::int64_t first_time = 0;
};

}  // namespace ulexite::detail
