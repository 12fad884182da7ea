// Bugs that other runtimes have had, each named after where it was seen.

#include "support/runtime_fixture.hpp"

#include <ulexite.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class KnownBugs : public WorkersTest {
 protected:
  // For a fiber that keeps its worker meanwhile.
  void hog_until_the_others_sleep() {
    EXPECT_TRUE(hog_until([&] {
      const runtime_metrics now = rt().metrics();
      return now.workers_sleeping + 1 == now.workers;
    }));
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, KnownBugs, testing::Values(2, 4, 16), testing::PrintToStringParamName());

struct event_counter {
  int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ~event_counter() { ::close(fd); }
  void add() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(fd, &one, sizeof one));
  }
};

// tokio 4730: one worker computes, the other sleeps, and no worker watches the event loop.
TEST_P(KnownBugs, Tokio4730AnEventIsServedBesideAFiberThatComputes) {
  run([this] {
    for (int round = 0; round < 5; ++round) {
      const event_counter source;
      std::atomic<bool> waits{false}, served{false};
      auto waiter = spawn([&] {
        waits = true;
        net::wait_fd(source.fd, net::interest::read);
        served = true;
      });
      wait_until([&] { return waits.load(); });
      hog_until_the_others_sleep();
      this_fiber::sleep_for(std::chrono::milliseconds(1));  // the worker that watches the event loop runs this fiber
      std::thread outside([&] { source.add(); });
      EXPECT_TRUE(hog_until([&] { return served.load(); }));
      outside.join();
      waiter.join();
    }
  });
}

// golang 13546: fibers that yield all the time keep their worker. One fiber computes on the other worker, and one more
// is behind it.
TEST_P(KnownBugs, Golang13546AFiberBehindAHogRunsBesideYielders) {
  run([this] {
    std::atomic<bool> over{false}, ran{false};
    task_group yielders;
    for (int i = 0; i < 2 * 16; ++i)
      yielders.spawn([&] {
        while (!over) this_fiber::yield();
      });
    wait_until([&] {  // they keep every worker
      const runtime_metrics now = rt().metrics();
      return now.workers == GetParam() && now.workers_sleeping == 0;
    });
    spawn([&] { ran = true; }).detach();  // behind this fiber
    EXPECT_TRUE(hog_until([&] { return ran.load(); }));
    over = true;
    yielders.wait();
  });
}

// golang 38860: a ticker of a millisecond stops while all workers except one compute.
TEST_P(KnownBugs, Golang38860ATickerTicksBesideHogs) {
  const std::size_t hogs = GetParam() - 1;
  run([&] {
    std::atomic<int> ticks{0};
    std::atomic<bool> enough{false};
    task_group all;
    for (std::size_t i = 0; i < hogs; ++i) all.spawn([&] { EXPECT_TRUE(hog_until([&] { return enough.load(); })); });
    all.spawn([&] {
      ticker every(std::chrono::milliseconds(1));
      while (ticks < 20) {
        every.channel().receive();
        ++ticks;
      }
      enough = true;
    });
    all.wait();
    EXPECT_EQ(ticks.load(), 20);
  });
}

// A storm of wakes from outside for one fiber: each set lets one wait pass, none is lost, and none passes twice.
TEST_P(KnownBugs, AStormOfWakesOfOneFiberGivesOnePassForEach) {
  constexpr int threads = 4, wakes = 2'000;
  run([] {
    counting_semaphore<> permits(0);
    int passed = 0;
    auto waiter = spawn([&] {
      for (; passed < threads * wakes; ++passed) permits.acquire();
    });
    std::vector<std::thread> outside;
    for (int i = 0; i < threads; ++i)
      outside.emplace_back([&] {
        for (int k = 0; k < wakes; ++k) permits.release();
      });
    waiter.join();
    for (auto& each : outside) each.join();
    EXPECT_EQ(passed, threads * wakes);
    EXPECT_FALSE(permits.try_acquire());
  });
}

// Boost 1.81: a fiber that yields in a catch block finds another fiber's exception at its rethrow.
TEST_P(KnownBugs, Boost181ARethrowAfterAYieldInACatchBlockFindsItsOwnException) {
  run([] {
    task_group all;
    for (int i = 0; i < 64; ++i)
      all.spawn([i] {
        for (int round = 0; round < 50; ++round) {
          const std::string mine = std::to_string(i) + " " + std::to_string(round);
          try {
            try {
              throw std::runtime_error(mine);
            } catch (const std::exception&) {
              this_fiber::yield();
              EXPECT_EQ(std::uncaught_exceptions(), 0);
              throw;
            }
          } catch (const std::exception& again) {
            this_fiber::yield();
            EXPECT_EQ(again.what(), mine);
          }
        }
      });
    all.wait();
  });
}

// Two fibers resume each other across workers before either has left its stack: the resumable flag says no until then.
TEST_P(KnownBugs, TwoFibersThatResumeEachOtherCrosswise) {
  run([] {
    for (int pair = 0; pair < 20; ++pair) {
      binary_semaphore left(0), right(0);
      int turns = 0;
      task_group both;
      both.spawn([&] {
        for (int i = 0; i < 500; ++i) {
          right.release();
          left.acquire();
          ++turns;
        }
      });
      both.spawn([&] {
        for (int i = 0; i < 500; ++i) {
          right.acquire();
          left.release();
        }
      });
      both.wait();
      EXPECT_EQ(turns, 500);
    }
  });
}

// Ten thousand fibers in waits of all kinds when the runtime ends: each ends, and its frame is left.
TEST_P(KnownBugs, AShutdownInTheMidstOfTenThousandWaits) {
  std::atomic<int> begun{0}, ended{0};
  struct frame {
    explicit frame(std::atomic<int>& begins, std::atomic<int>& ends) : at_end(ends) { ++begins; }
    ~frame() { ++at_end; }
    std::atomic<int>& at_end;
  };
  struct objects {
    channel<int> empty, full;
    mutex locked;
    condition_variable_any never;
    counting_semaphore<> none{0};
    event unset;
    latch closed{1};
    wait_group busy;
    shared_mutex read;
  };
  runtime& ending = make(GetParam());
  const auto of = std::make_shared<objects>();
  of->busy.add();
  const int fibers = test::fibers(10'000);
  for (int i = 0; i < fibers; ++i)
    ending
        .spawn([&, of, i] {
          const frame mine(begun, ended);
          switch (i % 9) {
            case 0: of->empty.receive(); break;
            case 1: of->full.send(1); break;
            case 2: of->none.acquire(); break;
            case 3: of->unset.wait(); break;
            case 4: of->closed.wait(); break;
            case 5: of->busy.wait(); break;
            case 6: this_fiber::sleep_for(std::chrono::hours(1)); break;
            case 7: select(on_receive(of->empty), on_send(of->full, 1), after(std::chrono::hours(1))); break;
            case 8: {
              std::unique_lock lock(of->locked);
              of->never.wait_for(lock, std::chrono::hours(1));
              break;
            }
          }
        })
        .detach();
  wait_until([&] { return begun == fibers; });
  end(ending, shutdown_mode::cancel);
  EXPECT_EQ(ended.load(), fibers);
}

}  // namespace
