// Thousands of timers that never fire, and a million sleepers that all wake.

#include "abuse.hpp"

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fstream>
#include <memory>
#include <vector>

namespace ulexite::test {
namespace {

class AbuseTimers : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseTimers);

// From the line of that name in a file of /proc.
std::size_t kibibytes(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name)) return std::stoul(line.substr(name.size()));
  return 0;
}

std::size_t resident() { return kibibytes("/proc/self/status", "VmRSS:") * 1024; }

// A reader under a deadline and a selecting fiber with a time limit, both far away: each round arms and disarms. The
// first read may take a quarter of the test, because a fresh sender has one turn in four while others are woken.
void rearm(int rounds) {
  auto pair = stream_pair::unix_sockets();
  channel<int> values;
  auto sender = spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      pair.right.write("x");
      values.send(i);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    const deadline_scope limit(1h + std::chrono::milliseconds(detail::random_below(1000)));
    pair.left.expires_after(2h);
    char c = 0;
    ASSERT_EQ(pair.left.read_some(&c, 1), 1u);
    const auto chosen =
        select(on_receive(values, [&](std::optional<int> got) { EXPECT_EQ(got, i); }), after(3h, [] { FAIL(); }));
    ASSERT_EQ(chosen, 0u);
  }
  sender.join();
}

TEST_P(AbuseTimers, AThousandAreRearmedAllTheTimeWhileOthersSleep) {
  const descriptor_limit raised;
  in_runtime([] {
    std::atomic<int> early{0}, woken{0};
    task_group for_good, for_a_time, busy;
    const int sleepers = fibers(times(10'000));
    for (int i = 0; i < sleepers; ++i) {
      for_good.spawn([] { this_fiber::sleep_for(1h); });
      for_a_time.spawn([&, time = std::chrono::microseconds(detail::random_below(200'000))] {
        const auto end = steady_clock::now() + time;
        this_fiber::sleep_until(end);
        if (steady_clock::now() < end) ++early;
        ++woken;
      });
    }
    const auto pairs = descriptor_limit::room_for(static_cast<std::size_t>(fibers(times(1000)))) / 2;
    for (std::size_t i = 0; i < pairs; ++i) busy.spawn([] { rearm(times(200)); });
    busy.wait();
    for_a_time.wait();
    EXPECT_EQ(woken, sleepers);
    EXPECT_EQ(early, 0);
    EXPECT_EQ(for_good.size(), static_cast<std::size_t>(sleepers));
    for_good.request_stop();
    for_good.wait();
  });
}

TEST_P(AbuseTimers, TimersThatFireRaceWithWhatTheyBound) {
  in_runtime([] {
    task_group busy;
    std::atomic<int> late{0}, in_time{0};
    for (int i = 0; i < fibers(100); ++i)
      busy.spawn([&] {
        auto pair = stream_pair::unix_sockets();
        auto sender = spawn([&, count = times(50)] {
          for (int n = 0; n < count; ++n) {
            this_fiber::sleep_for(std::chrono::microseconds(detail::random_below(400)));
            pair.right.write("x");
          }
          pair.right.shutdown_write();
        });
        int received = 0;
        for (bool open = true; open;) {
          char c;
          try {
            const std::size_t got = timeout(std::chrono::microseconds(detail::random_below(400)),
                                            [&] { return pair.left.read_some(&c, 1); });
            open = got > 0;
            received += static_cast<int>(got);
            ++in_time;
          } catch (const deadline_exceeded&) {
            ++late;
          }
        }
        EXPECT_EQ(received, times(50)) << "a byte was lost with a deadline";
        sender.join();
      });
    busy.wait();
    EXPECT_GT(in_time, 0);
  });
}

class AbuseTimersSlow : public AbuseTest {};
INSTANTIATE_TEST_SUITE_P(Net, AbuseTimersSlow, testing::Values(2), worker_count);

// Up to `wanted` fibers, as the memory allows, sleep at a time, and all wake.
void let_sleep(std::size_t wanted) {
  constexpr std::size_t most_each = 8192;  // bytes; a stack's first page, and what its fiber and timer take
  const std::size_t count = std::min(kibibytes("/proc/meminfo", "MemAvailable:") * 1024 / 2 / most_each, wanted);
  if (count < wanted) std::printf("only %zu of %zu: there is not enough memory\n", count, wanted);
  const std::size_t before = resident();
  task_group sleepers;
  std::atomic<std::size_t> begun{0}, woken{0}, most{0};
  for (std::size_t i = 0; i < count; ++i)
    sleepers.spawn([&] {
      if (++begun == count) most = resident();
      do this_fiber::sleep_for(300ms);
      while (begun < count);  // so that all of them sleep at a time
      ++woken;
    });
  sleepers.wait();
  EXPECT_EQ(woken, count);
  const std::size_t each = (most - std::min<std::size_t>(before, most)) / count;
  std::printf("%zu sleepers, %zu bytes each\n", count, each);
  if (!sanitized) EXPECT_LT(each, most_each);
}

const runtime_options small_stacks{.stack_size = sanitized ? 0 : std::size_t{64} * 1024};

TEST_P(AbuseTimers, AHundredThousandSleepersWake) {
  in_runtime([] { let_sleep(static_cast<std::size_t>(fibers(sanitized ? 10'000 : 100'000))); }, small_stacks);
}

// It takes 5 GB.
TEST_P(AbuseTimersSlow, AMillionSleepersWake) {
  in_runtime([] { let_sleep(static_cast<std::size_t>(fibers(sanitized ? 10'000 : 1'000'000))); }, small_stacks);
}

}  // namespace
}  // namespace ulexite::test
