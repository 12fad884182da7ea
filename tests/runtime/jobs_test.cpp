#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <atomic>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using testing::KilledBySignal;

class Jobs : public WorkersTest {};
ULEXITE_TEST_WORKERS(Jobs);

struct counting : job {
  std::atomic<int>* count = nullptr;
  wait_group* group = nullptr;

  void prepare(std::atomic<int>& counter, wait_group& all) {
    count = &counter;
    group = &all;
    run = [](job* self) noexcept {
      auto& here = *static_cast<counting*>(self);
      EXPECT_FALSE(in_fiber());
      EXPECT_EQ(this_fiber::id(), 0u);
      EXPECT_EQ(this_fiber::name(), "");
      ++*here.count;
      here.group->done();
    };
  }
};

TEST_P(Jobs, RunOnceEach) {
  run([] {
    const int count = 3000;  // more than the queue holds
    std::atomic<int> ran{0};
    wait_group all(count);
    std::vector<counting> jobs(count);
    for (counting& each : jobs) {
      each.prepare(ran, all);
      schedule(each);
    }
    all.wait();
    EXPECT_EQ(ran, count);
  });
}

TEST_P(Jobs, RunInBatches) {
  run([] {
    for (const int count : {0, 1, 7, 1024, 1025, 5000}) {
      std::atomic<int> ran{0};
      wait_group all(static_cast<std::size_t>(count));
      std::vector<counting> jobs(static_cast<std::size_t>(count));
      job_list list;
      EXPECT_TRUE(list.empty());
      for (counting& each : jobs) {
        each.prepare(ran, all);
        list.push(each);
      }
      EXPECT_EQ(list.size(), static_cast<std::size_t>(count));
      schedule(std::move(list));
      all.wait();
      EXPECT_EQ(ran, count);
    }
  });
}

TEST_P(Jobs, AreInOneListAtATime) {
  run([] {
    std::atomic<int> ran{0};
    wait_group all(2);
    counting first, second;
    first.prepare(ran, all);
    second.prepare(ran, all);
    job_list from;
    from.push(first);
    job_list to = std::move(from);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    from.push(second);
    EXPECT_EQ(to.size(), 1u);
    schedule(std::move(to));
    EXPECT_TRUE(to.empty());  // NOLINT(bugprone-use-after-move)
    to = std::move(from);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    schedule(std::move(to));
    all.wait();
    EXPECT_EQ(ran, 2);
  });
}

// Each schedules two more, to a depth.
struct branching : job {
  branching* jobs = nullptr;
  std::size_t index = 0, count = 0;
  wait_group* group = nullptr;
};

TEST_P(Jobs, ScheduleJobs) {
  run([] {
    const std::size_t count = (1 << 12) - 1;
    wait_group all(count);
    std::vector<branching> jobs(count);
    for (std::size_t i = 0; i < count; ++i) {
      jobs[i].jobs = jobs.data();
      jobs[i].index = i;
      jobs[i].count = count;
      jobs[i].group = &all;
      jobs[i].run = [](job* self) noexcept {
        auto& here = *static_cast<branching*>(self);
        for (const std::size_t child : {2 * here.index + 1, 2 * here.index + 2})
          if (child < here.count) schedule(here.jobs[child]);
        here.group->done();
      };
    }
    schedule(jobs[0]);
    all.wait();
  });
}

TEST_P(Jobs, SpawnFibersAndDoWhatNeedsNoWait) {
  run([] {
    struct busy : job {
      channel<int> values{4};
      wait_group done{2};
    } one;
    one.run = [](job* self) noexcept {
      auto& here = *static_cast<busy*>(self);
      here.values.send(1);
      int value = 2;
      EXPECT_EQ(here.values.try_send(value), channel_status::ok);
      spawn([&here] { here.done.done(); }).detach();
      this_fiber::yield();
      this_fiber::check();
      here.values.close();
      here.done.done();
    };
    schedule(one);
    one.done.wait();
    EXPECT_EQ(one.values.receive(), 1);
    EXPECT_EQ(one.values.receive(), 2);
    EXPECT_EQ(one.values.receive(), std::nullopt);
  });
}

TEST_P(Jobs, AndFibersDoNotStarveEachOther) {
  run([] {
    struct endless : job {
      std::atomic<bool> stop{false};
      std::atomic<long> turns{0};
      wait_group ended{1};
    } jobs;
    jobs.run = [](job* self) noexcept {
      auto& here = *static_cast<endless*>(self);
      ++here.turns;
      if (here.stop) {
        here.ended.done();
      } else {
        schedule(here);
      }
    };
    schedule(jobs);
    for (int i = 0; i < 50; ++i) spawn([] { this_fiber::yield(); }).join();
    const long before = jobs.turns;
    wait_until([&] { return jobs.turns > before + 10; });
    jobs.stop = true;
    jobs.ended.wait();
  });
}

// Nothing runs before main, and nothing is allocated.
std::atomic<int> statics_ran{0};
constinit job first_static{.run = [](job*) noexcept { ++statics_ran; }};
constinit job second_static{.run = [](job*) noexcept { ++statics_ran; }};
constinit job_list static_list;

TEST_P(Jobs, OfStaticStorageFromOutside) {
  statics_ran = 0;
  static_list.push(first_static);
  static_list.push(second_static);
  rt().schedule(std::move(static_list));
  wait_until([] { return statics_ran == 2; });
  EXPECT_TRUE(static_list.empty());
  rt().schedule(first_static);
  wait_until([] { return statics_ran == 3; });
}

TEST_P(Jobs, FromManyThreadsOutside) {
  const int threads = 4, count = 2000;
  runtime& mine = rt();  // not made by several threads
  std::atomic<int> ran{0};
  wait_group all(threads * count);
  std::vector<counting> jobs(threads * count);
  for (counting& each : jobs) each.prepare(ran, all);
  {
    std::vector<std::jthread> outside;
    for (int t = 0; t < threads; ++t)
      outside.emplace_back([&, t] {
        for (int i = 0; i < count; ++i) mine.schedule(jobs[static_cast<std::size_t>(t * count + i)]);
      });
  }
  all.wait();
  EXPECT_EQ(ran, threads * count);
}

TEST_P(Jobs, AllRunBeforeADrainEnds) {
  std::atomic<int> ran{0};
  wait_group all(1000);
  std::vector<counting> jobs(1000);
  job_list list;
  for (counting& each : jobs) {
    each.prepare(ran, all);
    list.push(each);
  }
  runtime& mine = make(GetParam());
  mine.schedule(std::move(list));
  end(mine, shutdown_mode::drain);
  EXPECT_EQ(ran, 1000);
  EXPECT_THROW(mine.schedule(jobs[0]), usage_error);
}

using JobsOutside = RuntimeTest;

TEST_F(JobsOutside, AnyRuntimeAreRefused) {
  job one;
  one.run = [](job*) noexcept {};
  try {
    schedule(one);
    FAIL() << "scheduled into nothing";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), errc::no_runtime);
  }
  job_list list;
  list.push(one);
  EXPECT_THROW(schedule(std::move(list)), std::system_error);
  EXPECT_EQ(list.size(), 1u);
}

TEST_F(JobsOutside, WithoutAFunctionAreAUsageError) {
  make(1).run([] {
    job empty;
    EXPECT_THROW(schedule(empty), usage_error);
    job_list list;
    EXPECT_THROW(list.push(empty), usage_error);
  });
}

void run_in_job(void (*function)(job*) noexcept) {
  const watchdog dog("a job that waits");
  runtime rt({.threads = 2});
  rt.run([&] {
    job one;
    one.run = function;
    schedule(one);
    for (;;) this_fiber::yield();
  });
}

TEST(JobsDeathTest, AJobThatWaitsIsAReportedBug) {
  use_threadsafe_death_tests();
  const char* const line = "ulexite: BUG: a job or a stop callback waits for something";
  EXPECT_EXIT(run_in_job([](job*) noexcept { channel<int>().receive(); }), KilledBySignal(SIGABRT), line);
  // For an hour: a time that is over, and a fiber that has ended, are not waited for.
  EXPECT_EXIT(run_in_job([](job*) noexcept { this_fiber::sleep_for(1h); }), KilledBySignal(SIGABRT), line);
  EXPECT_EXIT(run_in_job([](job*) noexcept { spawn([] { this_fiber::sleep_for(1h); }).join(); }),
              KilledBySignal(SIGABRT), line);
}

}  // namespace
