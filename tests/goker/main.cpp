// goker                      each bug is found within 1,000 schedules, and its mended twin passes them all
// goker table [SECONDS] [WORKERS]   the table of docs/verification.md: by explore, by the deadlock report of one real run, and by
//                            SECONDS (10) of real runs one after the other on WORKERS (2) workers
// goker NAME                 the report of one
#include "goker.hpp"

#include <ulexite/testing/explore.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
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

// One run on real workers: does it fail, or leave fibers? A deadlock is told by the library's own report.
bool fails_for_real(const bug& which, std::size_t workers) {
  bool failed = false;
  ux::runtime rt({.threads = workers,
                  .on_unhandled_exception = [&](std::string_view, std::exception_ptr) { failed = true; },
                  .on_deadlock = ux::deadlock_action::fail});
  try {
    rt.run([&] { which.run(false); });
  } catch (const std::exception&) {
    failed = true;
  }
  for (int i = 0; i < 20 && !failed && rt.metrics().fibers_live > 0; ++i) std::this_thread::sleep_for(1ms);
  failed = failed || rt.metrics().fibers_live > 0;
  rt.shutdown(ux::shutdown_mode::cancel);
  return failed;
}

// The number of the run that failed, or 0.
std::size_t stress(const bug& which, std::chrono::seconds time, std::size_t workers) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t runs = 1; std::chrono::steady_clock::now() - begin < time; ++runs)
    if (fails_for_real(which, workers)) return runs;
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

int print_table(std::chrono::seconds time, std::size_t workers) {
  std::printf(
      "| bug | schedules, median of 11 seeds | one real run | real runs in %lld s, %zu workers |\n| --- | --- | --- | "
      "--- |\n",
      static_cast<long long>(time.count()), workers);
  for (const bug& each : all_bugs()) {
    std::vector<std::size_t> numbers;
    for (std::uint64_t seed = 1; seed <= 11; ++seed) {
      const auto result = explore(each, false, seed);
      numbers.push_back(result.failure ? result.failure->number : most_schedules + 1);
    }
    std::sort(numbers.begin(), numbers.end());
    const bool at_once = fails_for_real(each, workers);
    const std::size_t runs = at_once ? 1 : stress(each, time, workers);
    std::printf("| %s | %s | %s | %s |\n", each.name,
                numbers[5] > most_schedules ? "-" : std::to_string(numbers[5]).c_str(), at_once ? "yes" : "-",
                runs == 0 ? "-" : std::to_string(runs).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return check_all();
  const std::string_view word = argv[1];
  if (word == "table")
    return print_table(std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 10),
                       argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 2);
  for (const bug& each : all_bugs())
    if (word == each.name) {
      const auto result = explore(each, false, 1);
      std::puts(result.failure ? result.failure->report.c_str() : "it was not found");
      return !result.failure;
    }
  std::fprintf(stderr, "goker: no bug of the name %s\n", argv[1]);
  return 2;
}
