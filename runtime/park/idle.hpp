#pragma once

// The numbers of workers that search, sleep, and were started. They are one word, so a pusher decides with one load
// whether to wake a worker. After rayon's sleep counters (Niko Matsakis, 2020) and Protty's thread pool (2021).
//
// State
//   bits_   bits 0-15 searching, 16-31 sleeping, 32-47 started. sleeping and started change only with the parker's
//           mutex held; searching changes at any time. A pusher may see it stale only as pairing A allows.
//
// Pairings
//   A  a pusher publishes work, then calls counts_after_publishing (a full fence, then a load). A worker that goes to
//      sleep or ends its search changes bits_, seq_cst, then reads the queues. The two are in a single total order:
//      either the pusher sees the change, or the worker sees the work.

#include <ulexite/base/atomics.hpp>

#include <cstdint>

namespace ulexite::detail {

struct idle_counts {
  std::uint32_t searching = 0;
  std::uint32_t sleeping = 0;
  std::uint32_t started = 0;

  [[nodiscard]] constexpr std::uint32_t awake() const noexcept { return started - sleeping; }
  friend constexpr bool operator==(idle_counts, idle_counts) noexcept = default;
};

template <class Atomics = std_atomics>
class basic_idle_word {
 public:
  // A hint, unless the parker's mutex is held: then exact for sleeping and started.
  [[nodiscard]] idle_counts counts() const noexcept { return unpack(bits_.load(Atomics::relaxed)); }  // hint

  // The publisher calls it after every publication of work. Any thread.
  [[nodiscard]] idle_counts counts_after_publishing() noexcept {
    return unpack(Atomics::load_after_fence(bits_));
  }  // A

  // running -> searching.
  void begin_search() noexcept { bits_.fetch_add(searcher, Atomics::seq_cst); }  // A

  // searching -> running. True if it was the last searcher: then it must read the queues once more.
  [[nodiscard]] bool end_search() noexcept {
    return unpack(bits_.fetch_sub(searcher, Atomics::seq_cst)).searching == 1;  // A
  }

  // running or searching -> sleeping. Parker's mutex held.
  void fall_asleep(bool from_search) noexcept {
    bits_.fetch_add(sleeper - (from_search ? searcher : 0), Atomics::seq_cst);  // A
  }

  // sleeping -> searching, by the sleeper itself or by its waker. Parker's mutex held.
  void wake_into_search() noexcept { bits_.fetch_add(searcher - sleeper, Atomics::seq_cst); }  // A

  // sleeping -> running: the sleep ended without a waker. Parker's mutex held.
  void wake() noexcept { bits_.fetch_sub(sleeper, Atomics::seq_cst); }  // A

  // not started -> searching. Parker's mutex held.
  void start_into_search() noexcept { bits_.fetch_add(worker + searcher, Atomics::seq_cst); }  // A

  // searching -> not started: the system refused the thread. True if it was the last searcher. Parker's mutex held.
  [[nodiscard]] bool start_failed() noexcept {
    return unpack(bits_.fetch_sub(worker + searcher, Atomics::seq_cst)).searching == 1;  // A
  }

 private:
  static constexpr std::uint64_t searcher = 1;
  static constexpr std::uint64_t sleeper = 1u << 16;
  static constexpr std::uint64_t worker = std::uint64_t{1} << 32;

  static constexpr idle_counts unpack(std::uint64_t bits) noexcept {
    return {static_cast<std::uint32_t>(bits & 0xffff), static_cast<std::uint32_t>(bits >> 16 & 0xffff),
            static_cast<std::uint32_t>(bits >> 32 & 0xffff)};
  }

  typename Atomics::template atomic<std::uint64_t> bits_{0};
};

}  // namespace ulexite::detail
