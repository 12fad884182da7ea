#include "common.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

namespace bench {

void put(const std::string& metric, double value) { std::printf("%s %.2f\n", metric.c_str(), value); }

void put_percentiles(const std::string& name, std::vector<std::int64_t>& samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double quantile) {
    const auto i = static_cast<std::size_t>(quantile * static_cast<double>(samples.size()));
    return static_cast<double>(samples[std::min(i, samples.size() - 1)]) / 1000;
  };
  put(name + "_p50_us", at(.50));
  put(name + "_p99_us", at(.99));
  put(name + "_max_us", at(1));
}

void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long size = 0, resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void require_power_of_ten(int n) {
  long power = 1;
  while (power < n) power *= 10;
  if (power != n) throw std::invalid_argument("N must be a power of ten, not " + std::to_string(n));
}

}  // namespace bench
