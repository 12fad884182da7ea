#include "support/runtime_fixture.hpp"

#include <cstdio>

namespace ulexite::test {
namespace {

constexpr std::size_t smallest_stack = 16 * 1024;
constexpr std::size_t sizes = 10;

std::vector<std::size_t> stacks_in_use() {
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < sizes; ++i) {
    const detail::stack_pool& pool = detail::stack_pool::of_size(smallest_stack << i);
    counts.push_back(pool.carved() - pool.unused());
  }
  return counts;
}

RuntimeTest* present = nullptr;

std::string name_of_test() {
  const testing::TestInfo* const info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + '.' + info->name();
}

}  // namespace

RuntimeTest::RuntimeTest() : name_(name_of_test()), watchdog_(name_.c_str(), &report), stacks_in_use_(stacks_in_use()) {
  present = this;
}

RuntimeTest::~RuntimeTest() {
  while (!runtimes_.empty()) {
    if (!runtimes_.back().ended) end(*runtimes_.back().runtime, shutdown_mode::cancel);
    runtimes_.pop_back();
  }
  EXPECT_EQ(stacks_in_use(), stacks_in_use_) << "stacks leaked, one number for each size from 16 KiB";
  present = nullptr;
}

runtime& RuntimeTest::make(runtime_options options) {
  runtimes_.push_back({std::make_unique<runtime>(std::move(options))});
  return *runtimes_.back().runtime;
}

std::size_t RuntimeTest::end(runtime& runtime, shutdown_mode mode) {
  const std::size_t left = runtime.shutdown(mode);
  const runtime_metrics m = runtime.metrics();
  EXPECT_EQ(m.lost_wakeups, 0u) << "a wake-up was lost";
  EXPECT_EQ(m.fibers_spawned, m.fibers_ended);
  EXPECT_EQ(m.fibers_live, 0u);
  for (owned& each : runtimes_)
    if (each.runtime.get() == &runtime) each.ended = true;
  return left;
}

// In the handler of a signal that ends the process: printf is not safe there, but the process ends anyway.
void RuntimeTest::report() {
  if (!present) return;
  for (const owned& each : present->runtimes_) {
    const runtime_metrics m = each.runtime->metrics();
    std::fprintf(
        stderr,
        "runtime: workers %zu (sleeping %zu, searching %zu), fibers live %zu, queued outside %zu, dispatches %llu, "
        "parks %llu, wakes %llu, polls %llu, lost wake-ups %llu\n",
        m.workers, m.workers_sleeping, m.workers_searching, m.fibers_live, m.queued_outside,
        static_cast<unsigned long long>(m.dispatches), static_cast<unsigned long long>(m.parks),
        static_cast<unsigned long long>(m.wakes), static_cast<unsigned long long>(m.polls),
        static_cast<unsigned long long>(m.lost_wakeups));
  }
}

}  // namespace ulexite::test
