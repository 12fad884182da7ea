#include <ulexite/base/perturb.hpp>

#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/random.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace ulexite::detail {
namespace {

// Threads are numbered by their first call here, so one seed gives each thread the same decisions.
std::uint64_t thread_seed() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  static const char* const given = std::getenv("ULEXITE_SEED");
  const std::uint64_t base = given ? std::strtoull(given, nullptr, 10) : 1;
  return base * 1000003 + threads.fetch_add(1, std::memory_order_relaxed);  // counter
}

[[gnu::noinline]] random& thread_random() noexcept {
  thread_local random generator{thread_seed()};
  random* it = &generator;
  asm volatile("" : "+r"(it));
  return *it;
}

}  // namespace

void perturb() noexcept {
  const std::uint32_t die = thread_random().below(1024);
  if (die < 1000) return;
  if (die < 1016) {
    for (std::uint32_t i = 0; i < 200; ++i) cpu_relax();
  } else if (die < 1023) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace ulexite::detail

#endif
