// goker                               each bug is found within 1,000 schedules, and its corrected twin passes them all
// goker NAME                          the report of one
// goker list                          the names
// goker median NAME                   in which schedule one is found, in the median of some seeds
// goker once NAME                     one real run, for the library's own report of a deadlock
// goker stress SECONDS WORKERS NAME   in which real run it shows, one run after the other on WORKERS workers
// table.py makes the table of docs/verification.md.
#include "goker.hpp"

#include <ulexite/testing/explore.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

namespace ux = ulexite;
using goker::bug;
using namespace std::chrono_literals;

constexpr std::size_t most_schedules = 1'000;

std::vector<bug> all_bugs() {
  std::vector<bug> all;
  for (const auto part :
       {goker::cockroach(), goker::etcd(), goker::grpc(), goker::kubernetes(), goker::moby(), goker::others()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

ux::testing::exploration explore(const bug& which, bool mended, std::uint64_t seed) {
  const ux::testing::explore_options options{
      .schedules = most_schedules, .seed = seed, .slowness = 1ms, .shorten = false};
  return ux::testing::find_failure(options, [&] { which.run(mended); });
}

// One run on real workers: whether it fails, hangs or leaves fibers. Then its runtime stays as it is: the process ends
// next.
bool fails_for_real(const bug& which, std::size_t workers) {
  bool failed = false;
  auto rt = std::make_unique<ux::runtime>(ux::runtime_options{
      .threads = workers, .on_unhandled_exception = [&](const ux::unhandled_exception&) { failed = true; }});
  auto main = rt->spawn([&] { which.run(false); });
  if (!main.wait_for(2s)) failed = true;  // long enough for a report of the deadlock
  if (!failed) try {
      main.get();
    } catch (const std::exception&) {
      failed = true;
    }
  for (int i = 0; i < 20 && !failed && rt->metrics().fibers_live > 0; ++i) std::this_thread::sleep_for(1ms);
  if (!failed && rt->metrics().fibers_live == 0) return false;
  std::this_thread::sleep_for(500ms);
  static_cast<void>(rt.release());
  return true;
}

// Real runs one after the other. Prints the number of the failed run, or 0.
int stress(const bug& which, std::chrono::seconds time, std::size_t workers) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t runs = 1; std::chrono::steady_clock::now() - begin < time; ++runs)
    if (fails_for_real(which, workers)) {
      std::printf("%zu\n", runs);
      std::fflush(stdout);
      std::_Exit(0);
    }
  std::puts("0");
  return 0;
}

// The number of the schedule that fails, in the median of 11 seeds; 0: more than there may be.
int median(const bug& which) {
  std::vector<std::size_t> numbers;
  for (std::uint64_t seed = 1; seed <= 11; ++seed) {
    const auto result = explore(which, false, seed);
    numbers.push_back(result.failure ? result.failure->number : most_schedules + 1);
  }
  std::ranges::sort(numbers);
  std::printf("%zu\n", numbers[5] > most_schedules ? 0 : numbers[5]);
  return 0;
}

int check_all() {
  std::size_t found = 0, bugs = 0;
  int wrong = 0;
  for (const bug& each : all_bugs()) {
    ++bugs;
    found += explore(each, false, 1).failure.has_value();
    if (const auto twin = explore(each, true, 1); twin.failure) {
      ++wrong;
      std::printf("%s, mended: %s\n", each.name, twin.failure->report.c_str());
    }
    if (!explore(each, false, 1).failure) std::printf("%s was not found\n", each.name);
  }
  std::printf("%zu of %zu bugs were found within %zu schedules; %d twins failed\n", found, bugs, most_schedules, wrong);
  return wrong != 0 || 100 * found < 95 * bugs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return check_all();
  const std::string_view word = argv[1], name = argv[argc - 1];
  for (const bug& each : all_bugs()) {
    if (word == "list") std::puts(each.name);
    if (name != each.name) continue;
    if (word == "median") return median(each);
    if (word == "once") {
      ux::runtime({.threads = 2}).run([&] { each.run(false); });
      return 0;
    }
    if (word == "stress" && argc == 5)
      return stress(each, std::chrono::seconds(std::atoi(argv[2])), std::strtoull(argv[3], nullptr, 10));
    const auto result = explore(each, false, 1);
    std::puts(result.failure ? result.failure->report.c_str() : "it was not found");
    return !result.failure;
  }
  if (word == "list") return 0;
  std::fprintf(stderr, "goker: no bug of the name %s\n", argv[argc - 1]);
  return 2;
}
