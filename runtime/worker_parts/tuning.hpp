#pragma once

// The numbers by which workers judge what pays. All were measured; bench/simulation includes this file too. Times are
// in nanoseconds.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail::tuning {

using ns = std::int64_t;

// Queues.
inline constexpr std::size_t ring_size = 1024;       // places in a worker's ring
inline constexpr std::size_t ring_overflow = 128;    // the oldest that a full ring moves to the shared queue
inline constexpr std::size_t inject_batch = 128;     // the most that a worker takes from the shared queue at a time
inline constexpr std::size_t maintenance_batch = 8;  // the same at maintenance, when it has its own work

// While others wait, the fiber in the slot runs next at most so often in a row.
inline constexpr unsigned slot_streak_limit = 3;

// Maintenance: every so often a worker polls and checks the shared queue, although it has work.
inline constexpr unsigned most_dispatches_per_maintenance = 61;
inline constexpr ns poll_interval = 100'000;
inline constexpr ns long_turn = poll_interval / 2;  // of the ring, after which woken fibers have as much time
inline constexpr ns longest_debt = 10'000'000;      // but at most so much
inline constexpr unsigned eager_dispatches = 5;     // as many or fewer in a poll interval: others should poll

// Searching. It does not pay to steal fibers that end sooner than they migrate.
inline constexpr ns search_time = 30'000;   // about the cost of a sleep and a wake
inline constexpr ns transfer_cost = 1000;   // of one fiber to another core and its memory back
inline constexpr ns worth_a_try = 100'000;  // a theft from a fast worker pays if it keeps the thief busy for so long
inline constexpr ns longest_look_away = 64 * transfer_cost;  // from a worker that serves its own queue fast
inline constexpr ns stall_time = 250'000;  // a busy worker helps one that has done nothing for so long

// Waking others: the pause after a wake for which nothing was taken.
inline constexpr ns shortest_pause = 50'000, longest_pause = 10'000'000;

// A fiber that never waits: after so many operations it yields.
inline constexpr unsigned operations_per_round = 16, rounds_per_quantum = 8;

// A worker's cache of stacks.
inline constexpr unsigned stacks_kept = 16, most_stacks_taken = 32;

// The monitor. It sleeps after two quiet ticks, so workers that wake up more often than that do not have to wake it
// each time. A retry that is refused takes about 1 us.
inline constexpr ns tick_interval = 10'000'000, trim_interval = 5'000'000'000;
inline constexpr ns quota_interval = 60'000'000'000;  // to the next read of the control group's quota
inline constexpr unsigned quiet_ticks_before_sleep = 2;
inline constexpr ns silence = 300'000'000;  // before it is asked whether that is a deadlock
inline constexpr std::size_t retries_per_tick = 1024;

// The trimming of stacks whose fibers wait for long: so much time of a tick, and so many blocks between two looks at
// the clock.
inline constexpr ns idle_stacks_portion = 1'000'000;
inline constexpr std::size_t blocks_per_look = 1024;

// The pause after a brief call that lasted: 16 times as long as its worker stood still, some two ticks of the monitor.
inline constexpr ns pause_after_lasting_call = 16 * 2 * tick_interval;

// After the machine has refused a thread, none is asked for during this time.
inline constexpr ns start_pause = 100'000'000;

// Whether a worker that was busy for so long with so many dispatches is eager: its fibers run so long that others
// should poll. A single fiber of a moment says little.
constexpr bool is_eager(ns busy, unsigned dispatches) noexcept {
  return busy > std::max(poll_interval * dispatches / (eager_dispatches + 1), poll_interval / 2);
}

// The pause before the next try of a step that may not pay. It is 0 after a success, and doubles after each failure.
constexpr ns next_pause(bool paid, ns last, ns shortest, ns longest) noexcept {
  if (paid) return 0;
  return 2 * last < shortest ? shortest : 2 * last > longest ? longest : 2 * last;
}

}  // namespace ulexite::detail::tuning
