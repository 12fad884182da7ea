// The cost of waiting fibers: memory, and the time to start and to release them.

#include "common.hpp"

#include <chrono>
#include <fstream>
#include <string>

namespace bench {
namespace {

double page_table_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmPTE:")) return std::stod(line.substr(6)) * 1024;
  return 0;
}

}  // namespace

void parked(int n) {
  ux::channel<int> gate;
  ux::wait_group up(static_cast<std::size_t>(n)), down(static_cast<std::size_t>(n));
  const double resident = resident_bytes(), tables = page_table_bytes();
  const stopwatch creation;
  for (int i = 0; i < n; ++i) {
    float_work(0);
    ux::spawn([&] {
      float_work(1);
      up.done();
      gate.receive();
      down.done();
    }).detach();
  }
  up.wait();
  creation.per("create_ns", n);
  ux::this_fiber::sleep_for(std::chrono::milliseconds(10));
  put("rss_bytes_per_fiber", (resident_bytes() - resident) / n);
  put("page_table_bytes_per_fiber", (page_table_bytes() - tables) / n);
  const stopwatch release;
  gate.close();
  down.wait();
  release.per("release_ns", n);
}

}  // namespace bench
