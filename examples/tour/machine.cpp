#include "machine.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tour {
namespace {

std::size_t open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  constexpr std::size_t guess = 32;
  return error ? guess : static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

}  // namespace

std::size_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t descriptors_for(std::size_t wanted) {
  constexpr std::size_t reserve = 16;  // other descriptors of the runtime: its event loop, a timer
  const std::size_t needed = open_descriptors() + reserve + wanted;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  const std::size_t missing = limit.rlim_cur < needed ? needed - limit.rlim_cur : 0;
  return wanted - std::min(missing, wanted);
}

}  // namespace tour
