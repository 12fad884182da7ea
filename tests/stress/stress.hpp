#pragma once

// Shared by the stress programs: their options, a seed that reruns a failure, checks, and a watchdog.

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/random.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <thread>

namespace ulexite::stress {

using namespace std::chrono_literals;

class program {
 public:
  program(int argc, char** argv) : name_(argv[0]) {
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
      if (!std::strcmp(argv[i], "--seconds")) {
        seconds_ = value;
      } else if (!std::strcmp(argv[i], "--threads")) {
        threads = static_cast<std::size_t>(value);
      } else if (!std::strcmp(argv[i], "--seed")) {
        seed_ = value;
      } else {
        usage();
      }
    }
    if (argc % 2 == 0) usage();
    if (seed_ == 0) seed_ = std::random_device{}() | 1u;
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    std::fflush(stdout);
    end_ = clock::now() + std::chrono::seconds(seconds_);
    dog_ = std::thread([this] { watch(); });
  }
  ~program() {
    done_ = true;
    dog_.join();
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  std::size_t threads = 2;

  // Whether there is time for another round. Its own generator follows from the seed and its number.
  [[nodiscard]] bool another_round() {
    moved();
    return clock::now() < end_ && (++round_, true);
  }
  [[nodiscard]] detail::random random() const { return detail::random(seed_ * 1'000'003 + round_); }
  [[nodiscard]] std::uint64_t round() const { return round_; }

  // Something happened: resets the watchdog.
  void moved() noexcept { steps_.fetch_add(1, std::memory_order_relaxed); }  // counter

  // The runtime that the watchdog dumps.
  void show(const runtime* shown) noexcept { shown_ = shown; }

  // A runtime is about to end, or has ended: no wake-up may have been lost.
  void check_metrics(const runtime& rt, bool ended) {
    const runtime_metrics m = rt.metrics();
    check(m.lost_wakeups == 0, "a wake-up was lost and rescued", static_cast<long long>(m.lost_wakeups));
    if (ended) check(m.fibers_spawned == m.fibers_ended, "fibers are left", static_cast<long long>(m.fibers_live));
    wakes_ += m.wakes;
    dispatches_ += m.dispatches;
  }

  void check(bool good, const char* what, long long value = 0) {
    if (good) return;
    std::fprintf(stderr, "FAILED: %s (%lld), in round %llu\n", what, value, static_cast<unsigned long long>(round_));
    give_up();
    std::fflush(nullptr);
    std::_Exit(1);
  }

  // Ends a runtime when its fibers have ended.
  void drain(runtime& rt) {
    show(nullptr);
    rt.shutdown(shutdown_mode::drain);
    check_metrics(rt, true);
  }
  // Calls body(rt, random) in rounds, each with a runtime of its own. Returns the status of the program.
  template <class Body>
  int run_with_a_runtime_each(Body body) {
    while (another_round()) {
      detail::random generator = random();
      runtime rt({.threads = threads});
      show(&rt);
      body(rt, generator);
      drain(rt);
    }
    return report();
  }
  // The same with one runtime for all rounds.
  template <class Body>
  int run_with_one_runtime(Body body, runtime_options options = {}) {
    options.threads = threads;
    runtime rt(options);
    show(&rt);
    while (another_round()) {
      detail::random generator = random();
      body(rt, generator);
    }
    drain(rt);
    return report();
  }

  // The last line.
  int report() {
    std::printf("%llu rounds, %llu dispatches, %llu wakes, no failure\n", static_cast<unsigned long long>(round_),
                static_cast<unsigned long long>(dispatches_), static_cast<unsigned long long>(wakes_));
    return 0;
  }

 private:
  using clock = std::chrono::steady_clock;

  [[noreturn]] void usage() {
    std::fprintf(stderr, "usage: %s [--seconds S] [--threads N] [--seed K]\n", name_);
    std::exit(2);
  }
  void give_up() {
    std::fprintf(stderr, "again: %s --seconds %llu --threads %zu --seed %llu\n", name_,
                 static_cast<unsigned long long>(seconds_), threads, static_cast<unsigned long long>(seed_));
  }
  void watch() {
    std::uint64_t last = steps_;
    auto since = clock::now();
    while (!done_) {
      std::this_thread::sleep_for(20ms);
      if (const std::uint64_t now = steps_; now != last) {
        last = now;
        since = clock::now();
      } else if (clock::now() - since > 30s) {
        std::fprintf(stderr, "FAILED: nothing moves since 30 s, in round %llu\n",
                     static_cast<unsigned long long>(round_));
        if (const runtime* const rt = shown_) {
          print(rt->metrics());
          rt->dump(std::cerr);
        }
        give_up();
        std::abort();
      }
    }
  }
  static void print(const runtime_metrics& m) { std::fputs(to_string(m).c_str(), stderr); }

  const char* const name_;
  std::uint64_t seconds_ = 5, seed_ = 0, round_ = 0;
  clock::time_point end_;
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<const runtime*> shown_{nullptr};
  std::atomic<bool> done_{false};
  std::uint64_t wakes_ = 0, dispatches_ = 0;
  std::thread dog_;
};

// The values that went into channels, and came out of them.
class ledger {
 public:
  explicit ledger(program& test) : test_(test) {}

  void note_sent(std::uint64_t value) {
    ++sent_;
    sent_sum_ += value;
  }
  void note_received(std::uint64_t value) {
    ++received_;
    received_sum_ += value;
    test_.moved();
  }
  // When nothing is under way: all that were sent have arrived.
  void check() {
    test_.check(sent_ == received_, "values lost or doubled",
                static_cast<long long>(sent_) - static_cast<long long>(received_));
    test_.check(sent_sum_ == received_sum_, "other values arrived than were sent");
  }

 private:
  program& test_;
  std::atomic<std::uint64_t> sent_{0}, received_{0}, sent_sum_{0}, received_sum_{0};
};

inline void get_unless_cancelled(join_handle<>& fiber) {
  try {
    fiber.get();
  } catch (const operation_cancelled&) {
  }
}

// At most so many fibers live at a time under ThreadSanitizer.
constexpr int fibers(int count) { return ULEXITE_TSAN && count > 100 ? 100 : count; }

}  // namespace ulexite::stress
