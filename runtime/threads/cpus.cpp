#include <ulexite/runtime/threads/cpus.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <sched.h>

namespace ulexite::detail {
namespace {

std::size_t checked(std::size_t count, const std::string& origin) {
  if (count >= 1 && count <= most_processors) return count;
  throw std::invalid_argument(origin + " must be from 1 to " + std::to_string(most_processors) + ", not " +
                              std::to_string(count));
}

std::size_t by_affinity() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)  // the machine has more processors than the set can hold
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most_processors);
  return static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
}

constexpr double unlimited = std::numeric_limits<double>::infinity();

// The processor time, in processors, that the control group at `directory` allows by its own limit, of either version.
double quota_of(const std::string& directory) {
  double quota = 0, period = 0;
  if (std::ifstream both(directory + "/cpu.max"); !(both >> quota >> period)) {
    std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(directory + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : unlimited;
}

// The path of this process's group in the hierarchy of `controllers`; "" names version 2. Empty: there is none.
std::string group_path(const std::string& process, std::string_view controllers) {
  std::ifstream groups(process + "/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:PATH
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto named = ',' + line.substr(first + 1, second - first - 1) + ',';
    if (named.find(',' + std::string(controllers) + ',') != named.npos) return line.substr(second + 1);
  }
  return {};
}

// A group's limit also applies to all groups below it, so the lowest limit counts. `mounted` is the group that is
// mounted at `point`; its ancestors are not visible.
double least_quota(const std::string& point, std::string_view mounted, std::string path) {
  path += '/';
  const bool below = mounted == "/" || path.starts_with(std::string(mounted) + '/');
  path = below && !path.starts_with("/..") ? path.substr(mounted == "/" ? 0 : mounted.size()) : "";
  while (path.ends_with('/')) path.pop_back();
  double least = unlimited;
  for (std::string group = point + path;; group.resize(group.rfind('/'))) {
    least = std::min(least, quota_of(group));
    if (group.size() <= point.size()) return least;
  }
}

// Null: not given, also by an empty value.
const char* given_by_environment() noexcept {
  const char* const given = std::getenv("ULEXITE_THREADS");
  return given && *given ? given : nullptr;
}

}  // namespace

std::size_t quota_processors(const std::string& process) {
  double least = unlimited;
  std::ifstream mounts(process + "/mountinfo");
  for (std::string line; std::getline(mounts, line);) {  // see proc_pid_mountinfo(5)
    const auto separator = line.find(" - ");
    if (separator == line.npos) continue;
    std::istringstream left(line), right(line.substr(separator + 3));
    std::string number, parent, device, mounted, point, type, source, options;
    left >> number >> parent >> device >> mounted >> point;
    right >> type >> source >> options;
    const bool version_1 = type == "cgroup" && (',' + options + ',').find(",cpu,") != line.npos;
    if (version_1 || type == "cgroup2")
      least = std::min(least, least_quota(point, mounted, group_path(process, version_1 ? "cpu" : "")));
  }
  return least >= most_processors ? most_processors : std::max(static_cast<std::size_t>(least + 0.999), std::size_t{1});
}

bool follows_quota(std::size_t wanted) noexcept { return wanted == 0 && !given_by_environment(); }

std::size_t worker_limit(std::size_t wanted) {
  if (wanted != 0) return checked(wanted, "runtime_options::threads");
  if (const char* const given = given_by_environment()) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(given, &end, 10);
    if (*end != '\0' || *given == '-')
      throw std::invalid_argument("ULEXITE_THREADS must be a number from 1 to " + std::to_string(most_processors) +
                                  ", not \"" + given + '"');
    return checked(value, "ULEXITE_THREADS");
  }
  return processors();
}

std::size_t most_workers(std::size_t wanted) {
  return wanted == 0 ? 0 : checked(wanted, "runtime_options::max_threads");
}

std::size_t processors() { return std::min({by_affinity(), quota_processors("/proc/self"), most_processors}); }

}  // namespace ulexite::detail
