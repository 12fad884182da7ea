#include <ulexite/runtime/cpus.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <sched.h>

namespace ulexite::detail {
namespace {

constexpr std::size_t most = 1024;

std::size_t checked(std::size_t count, const std::string& origin) {
  if (count >= 1 && count <= most) return count;
  throw std::invalid_argument(origin + " must be from 1 to " + std::to_string(most) + ", not " + std::to_string(count));
}

std::size_t by_affinity() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;  // more processors than the set can name, or none
  return static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
}

// Processors' worth of time that the control group grants, rounded up; `most` when it does not limit.
std::size_t by_quota() {
  double quota = 0, period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 && (v2 >> quota >> period)) {
  } else if (std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
             !(q && p && (q >> quota) && (p >> period))) {
    return most;
  }
  if (quota <= 0 || period <= 0) return most;
  return std::clamp<std::size_t>(static_cast<std::size_t>(quota / period + 0.999), 1, most);
}

}  // namespace

std::size_t worker_limit(std::size_t wanted) {
  if (wanted != 0) return checked(wanted, "runtime_options::threads");
  if (const char* const given = std::getenv("ULEXITE_THREADS"); given && *given) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(given, &end, 10);
    if (*end != '\0' || *given == '-')
      throw std::invalid_argument(std::string("ULEXITE_THREADS must be a number, not \"") + given + '"');
    return checked(value, "ULEXITE_THREADS");
  }
  return processors();
}

std::size_t processors() { return std::min({by_affinity(), by_quota(), most}); }

}  // namespace ulexite::detail
