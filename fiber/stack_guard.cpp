#include <ulexite/fiber/stack_guard.hpp>

#include <ulexite/base/environment.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/fiber/memory_advice.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

enum class guard_kind { install, protect, canary };

struct guard_policy {
  guard_kind first;    // the best kind worth a try
  std::size_t budget;  // guards by mprotect
};

// State
//   installed, protected_, canaries   how many guards of each kind were made. Counters, written by any thread.
struct guard_counters {
  std::atomic<std::size_t> installed{0};
  std::atomic<std::size_t> protected_{0};
  std::atomic<std::size_t> canaries{0};
};
constinit guard_counters counters;

// Two maps for each guard, and a quarter of all maps: an eighth.
std::size_t default_budget() noexcept {
  std::size_t maps = 65530;  // the kernel's default, if it cannot be read
  if (std::FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(file, "%zu", &maps) != 1) maps = 65530;
    std::fclose(file);
  }
  return maps / 8;
}

// Old kernels refuse the advice. New ones refuse it for locked memory (mlockall); then the test page is locked too.
bool kernel_installs_guards() noexcept {
  void* const page = ::mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const bool installed = ::madvise(page, page_size(), MADV_GUARD_INSTALL) == 0;
  ::munmap(page, page_size());
  return installed;
}

guard_policy make_policy() noexcept {
  guard_policy policy{guard_kind::install, number_of_environment("ULEXITE_STACK_GUARD_BUDGET", default_budget())};
  const char* const given = std::getenv("ULEXITE_STACK_GUARDS");  // NOLINT(concurrency-mt-unsafe): as the line above
  const std::string_view wish = given && *given ? given : "install";
  if (wish != "install" && wish != "mprotect" && wish != "canary")
    warn("ULEXITE_STACK_GUARDS=%s is not install, mprotect or canary: it is ignored", given);
  if (wish == "canary") {
    policy.first = guard_kind::canary;
  } else if (wish == "mprotect" || !kernel_installs_guards()) {
    policy.first = guard_kind::protect;
  }
  return policy;
}

const guard_policy& policy() noexcept {
  static const guard_policy once = make_policy();
  return once;
}

char* guard_of(const stack& stack) noexcept { return stack.low - stack.guard; }

// Guards the list's stacks, up to the limit of one system call or the first guard that the kernel refuses. Returns the
// rest of the list. If this is the whole list, the first guard was refused.
stack* install(stack* list) noexcept {
  iovec ranges[64];
  std::size_t count = 0;
  for (const stack* each = list; each && count < std::size(ranges); each = each->next) {
    ranges[count++] = {guard_of(*each), each->guard};
  }
  const std::size_t done = advise({ranges, count}, MADV_GUARD_INSTALL);
  counters.installed.fetch_add(done, std::memory_order_relaxed);  // counter
  for (std::size_t i = 0; i < done; ++i) list = list->next;
  return list;
}

// Counts a guard before it makes it, so that all threads together stay within the budget.
bool protect(const stack& stack) noexcept {
  if (counters.protected_.fetch_add(1, std::memory_order_relaxed) < policy().budget &&  // counter
      ::mprotect(guard_of(stack), stack.guard, PROT_NONE) == 0) {
    return true;
  }
  counters.protected_.fetch_sub(1, std::memory_order_relaxed);  // counter
  return false;
}

constexpr std::size_t canary_words = 8;
constexpr std::uint64_t canary_word = 0x5ca1ab1e0ddba11dU;

std::uint64_t* canary_of(const stack& stack) noexcept {
  return reinterpret_cast<std::uint64_t*>(stack.low) - canary_words;
}

void place_canary(stack& stack) noexcept {
  stack.canary = true;
  std::fill_n(canary_of(stack), canary_words, canary_word);
  if (counters.canaries.fetch_add(1, std::memory_order_relaxed) == 0) {  // counter: one thread finds it 0
    warn(
        "no guard pages for further stacks (%zu made by mprotect): an overflow will be found late or never. "
        "Linux 6.13 or a larger vm.max_map_count helps",
        count_stack_guards().protected_);
  }
}

}  // namespace

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t stack_guard_size(std::size_t size) noexcept {
  constexpr std::size_t kib = 1024;
  return std::max(std::clamp(size / 4, 64 * kib, 1024 * kib), page_size());
}

void place_stack_guards(stack* list) noexcept {
  const guard_kind first = policy().first;
  while (list) {
    stack* const refused = first == guard_kind::install ? install(list) : list;
    if (refused != list) {
      list = refused;
      continue;
    }
    if (first == guard_kind::canary || !protect(*list)) place_canary(*list);
    list = list->next;
  }
}

bool stack_canary_intact(const stack& stack) noexcept {
  return std::all_of(canary_of(stack), canary_of(stack) + canary_words,
                     [](std::uint64_t word) { return word == canary_word; });
}

stack_guards count_stack_guards() noexcept {
  return {counters.installed.load(std::memory_order_relaxed),   // counter
          counters.protected_.load(std::memory_order_relaxed),  // counter
          counters.canaries.load(std::memory_order_relaxed)};   // counter
}

}  // namespace ulexite::detail
