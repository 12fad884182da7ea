#include <ulexite/base/perturb.hpp>

#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/environment.hpp>
#include <ulexite/base/random.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace ulexite::detail {
namespace {

// Threads are numbered by their first call here, so one seed gives each thread the same decisions.
std::uint64_t thread_seed() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  static const std::uint64_t base = number_of_environment("ULEXITE_SEED", 1);
  return base * 1000003 + threads.fetch_add(1, std::memory_order_relaxed);  // counter
}

struct perturbation {
  random generator{thread_seed()};
  bool on = true;
};

[[gnu::noinline]] perturbation& of_this_thread() noexcept {
  thread_local perturbation own;
  perturbation* it = &own;
  asm volatile("" : "+r"(it));
  return *it;
}

}  // namespace

void perturb() noexcept {
  perturbation& own = of_this_thread();
  if (!own.on) return;
  const std::uint32_t die = own.generator.below(1024);
  if (die < 1000) return;
  if (die < 1016) {
    for (std::uint32_t i = 0; i < 200; ++i) cpu_relax();
  } else if (die < 1023) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool set_perturbed(bool on) noexcept { return std::exchange(of_this_thread().on, on); }

}  // namespace ulexite::detail

#endif
