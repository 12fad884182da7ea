// Jobs that become fibers, because they have to wait.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstdint>
#include <stop_token>
#include <system_error>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class BecomeFiber : public WorkersTest {};
ULEXITE_TEST_WORKERS(BecomeFiber);
using BecomeFiberOutside = RuntimeTest;

// A job that wants to wait asks to be a fiber first.
struct waiting : job {
  channel<int>* values = nullptr;
  wait_group* done = nullptr;
};

TEST_P(BecomeFiber, MakesAJobAFiberThatMayWait) {
  run([] {
    channel<int> values;
    wait_group done(100);
    std::vector<waiting> jobs(100);
    job_list list;
    for (waiting& each : jobs) {
      each.values = &values;
      each.done = &done;
      each.run = [](job* self) noexcept {
        auto& here = *static_cast<waiting*>(self);
        EXPECT_FALSE(in_fiber());
        become_fiber();
        EXPECT_TRUE(in_fiber());
        EXPECT_NE(this_fiber::id(), 0u);
        become_fiber();
        EXPECT_EQ(here.values->receive(), 7);
        this_fiber::yield();
        spawn([] { this_fiber::yield(); }).join();
        here.done->done();
      };
      list.push(each);
    }
    schedule(std::move(list));
    for (int i = 0; i < 100; ++i) values.send(7);
    done.wait();
  });
}

// An ended fiber leaves no state to the jobs that run on its stack next.
TEST_P(BecomeFiber, LeavesNoTraceForTheJobsThatFollow) {
  run([] {
    static std::atomic<int> as_jobs, as_fibers;
    as_jobs = as_fibers = 0;
    std::vector<job> jobs(2000);
    job_list list;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].run = [](job* self) noexcept {
        EXPECT_FALSE(in_fiber());
        if (reinterpret_cast<std::uintptr_t>(self) / sizeof(job) % 3 == 0) {
          ++as_jobs;
        } else {
          become_fiber();
          ++as_fibers;
        }
      };
      list.push(jobs[i]);
    }
    schedule(std::move(list));
    wait_until([&] { return as_jobs + as_fibers == 2000; });
    EXPECT_GT(as_jobs, 0);
    EXPECT_GT(as_fibers, 0);
  });
}

TEST_P(BecomeFiber, LetsTheRuntimeCancelIt) {
  static std::atomic<bool> cancelled, inside;
  cancelled = inside = false;
  job one;
  one.run = [](job*) noexcept {
    become_fiber();
    inside = true;
    try {
      channel<int>().receive();
    } catch (const operation_cancelled&) {
      cancelled = true;
    }
  };
  runtime& mine = make(GetParam());
  mine.schedule(one);
  wait_until([] { return inside.load(); });
  end(mine, shutdown_mode::cancel);
  EXPECT_TRUE(cancelled);
}

struct stopping : job {
  join_handle<>* whom = nullptr;
  wait_group* done = nullptr;
};

TEST_P(BecomeFiber, DoesNothingInStopCallbacks) {
  run([] {
    channel<int> never, ready(1);
    wait_group done(1);
    std::atomic<bool> called{false};
    auto stopped = spawn([&](std::stop_token token) {
      const std::stop_callback on_stop(token, [&] {
        become_fiber();
        EXPECT_FALSE(in_fiber());
        called = true;
      });
      ready.send(1);
      EXPECT_THROW(never.receive(), operation_cancelled);
      // It may see the request before the callback is called. It must not remove the callback.
      wait_until([&] { return called.load(); });
    });
    ready.receive();
    stopping one;
    one.whom = &stopped;
    one.done = &done;
    one.run = [](job* self) noexcept {
      auto& here = *static_cast<stopping*>(self);
      here.whom->request_stop();
      EXPECT_FALSE(in_fiber());
      become_fiber();
      EXPECT_TRUE(in_fiber());
      here.done->done();
    };
    schedule(one);
    done.wait();
    stopped.join();
    EXPECT_TRUE(called);
  });
}

TEST_P(BecomeFiber, IsAUsageErrorWithinScopes) {
  run([] {
    wait_group done(1);
    waiting one;
    one.done = &done;
    one.run = [](job* self) noexcept {
      {
        const deadline_scope limited(std::chrono::hours(1));
        EXPECT_THROW(become_fiber(), usage_error);
        const shield uninterrupted;
        EXPECT_THROW(become_fiber(), usage_error);
        EXPECT_FALSE(in_fiber());
      }
      become_fiber();
      EXPECT_TRUE(in_fiber());
      static_cast<waiting*>(self)->done->done();
    };
    schedule(one);
    done.wait();
  });
}

TEST_F(BecomeFiberOutside, IsAUsageError) { EXPECT_THROW(become_fiber(), usage_error); }

TEST_F(BecomeFiberOutside, IsRefusedAtTheLimitOfFibers) {
  static std::atomic<int> refused;
  refused = 0;
  runtime& mine = make(runtime_options{.threads = 1, .max_fibers = 1});
  mine.run([] {
    job one;
    one.run = [](job*) noexcept {
      try {
        become_fiber();
      } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), errc::limit_reached);
        EXPECT_FALSE(in_fiber());
        ++refused;
      }
    };
    schedule(one);
    while (refused == 0) this_fiber::yield();
  });
}

}  // namespace
