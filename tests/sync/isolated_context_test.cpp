// One computation with a thread of its own.

#include "support/waiting.hpp"

#include <ulexite/net/io_wait.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/isolated_context.hpp>
#include <ulexite/sync/select.hpp>

#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class IsolatedContext : public WorkersTest {};
ULEXITE_TEST_WORKERS(IsolatedContext);

TEST_P(IsolatedContext, StartsNoFiberAfterTheShutdown) {
  runtime over({.threads = GetParam()});
  std::optional<isolated_context> outside;
  std::atomic<bool> ended{false};
  over.run([&] {
    outside.emplace("outside", [&] {
      while (!ended) std::this_thread::yield();
      EXPECT_THROW(spawn([] {}), usage_error);
    });
  });
  over.shutdown(shutdown_mode::drain);
  ended = true;
  outside->join();
}

TEST_P(IsolatedContext, TalksToFibersFromOneThread) {
  run([&] {
    channel<int> requests, answers;
    isolated_context loop("loop", [&] {
      const auto mine = std::this_thread::get_id();
      while (const auto request = requests.receive()) {
        EXPECT_EQ(std::this_thread::get_id(), mine);
        EXPECT_FALSE(in_fiber());
        answers.send(*request * 2);
      }
    });
    EXPECT_EQ(loop.name(), "loop");
    for (int i = 0; i < 100; ++i) {
      requests.send(i);
      EXPECT_EQ(answers.receive(), 2 * i);
    }
    EXPECT_FALSE(loop.done());
    requests.close();
    loop.join();
    EXPECT_TRUE(loop.done());
  });
}

TEST_P(IsolatedContext, SpawnsIntoTheRuntime) {
  run([&] {
    runtime* const home = &current_runtime();
    isolated_context loop("loop", [&] { EXPECT_EQ(spawn([] { return &current_runtime(); }).get(), home); });
    loop.join();
  });
}

TEST_P(IsolatedContext, ExceptionsComeBackAndAStopEndsWaits) {
  run([&] {
    isolated_context fails("fails", [] { throw std::runtime_error("there"); });
    EXPECT_THROW(fails.join(), std::runtime_error);
    std::atomic<int> stopped{0};
    channel<int> never;
    {
      isolated_context waits("waits", [&](std::stop_token token) {
        try {
          select(on_receive(never, [](auto) {}), after(1h));
        } catch (const operation_cancelled&) {
          EXPECT_TRUE(token.stop_requested());
          ++stopped;
          throw;
        }
      });
      isolated_context sleeps(
          "sleeps",
          [&](int) {
            try {
              this_fiber::sleep_for(1h);
            } catch (const operation_cancelled&) {
              EXPECT_TRUE(this_fiber::stop_requested());
              ++stopped;
            }
          },
          1);
    }
    EXPECT_EQ(stopped, 2);
  });
}

// Sends when it is destroyed, and waits for the receiver.
class sends_at_its_end {
 public:
  sends_at_its_end(channel<int>& to, std::atomic<bool>& sent) : to_(&to), sent_(sent) {}
  sends_at_its_end(sends_at_its_end&& other) noexcept : to_(std::exchange(other.to_, nullptr)), sent_(other.sent_) {}
  sends_at_its_end& operator=(sends_at_its_end&&) = delete;
  ~sends_at_its_end() {
    if (!to_) return;
    this_fiber::sleep_for(1ms);  // long enough for a caller that does not wait for this
    to_->send(1);
    sent_ = true;
  }

 private:
  channel<int>* to_;
  std::atomic<bool>& sent_;
};

TEST_P(IsolatedContext, TheBodyIsDestroyedBeforeTheEnd) {
  run([&] {
    std::atomic<bool> sent{false};
    channel<int> values;
    auto reader = spawn([&] { return values.receive().value(); });
    isolated_context joined("joined", [held = sends_at_its_end(values, sent)] {});
    joined.join();
    EXPECT_TRUE(sent);
    EXPECT_EQ(reader.get(), 1);
  });
}

// The destructor asks the body to stop. It must leave its worker to the reader.
TEST_P(IsolatedContext, TheEndOfTheBodyMayWaitForFibers) {
  run([&] {
    std::atomic<bool> sent{false};
    channel<int> values;
    auto reader = spawn([&] { return values.receive().value(); });
    {
      const isolated_context dropped("dropped", [held = sends_at_its_end(values, sent)] {});
    }
    EXPECT_TRUE(sent);
    EXPECT_EQ(reader.get(), 1);
  });
}

// As those of a fiber: under a shield, before the end is reported, on a thread that may still spawn.
TEST_P(IsolatedContext, TheValuesOfItsThreadAreDestroyedBeforeTheEnd) {
  struct sends {
    channel<int>* to = nullptr;
    ~sends() {
      if (to) spawn([target = to] { target->send(7); }).join();
    }
  };
  static fiber_local<sends> value;
  run([&] {
    channel<int> values, never;
    auto reader = spawn([&] { return values.receive().value(); });
    {
      const isolated_context stopped("stopped", [&] {
        value.get().to = &values;
        static_cast<void>(never.receive());
      });
    }
    EXPECT_EQ(reader.get(), 7);
  });
}

TEST_P(IsolatedContext, AStopEndsAWaitForADescriptor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  run([&] {
    const isolated_context dropped("dropped", [&] { net::wait_fd(ends[0], net::interest::read); });
    isolated_context joined("joined", [&] { static_cast<void>(net::wait_fd(ends[0], net::interest::read, 1h)); });
    joined.request_stop();
    EXPECT_THROW(joined.join(), operation_cancelled);
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

// Only a request to stop makes a cancellation the expected end.
TEST(IsolatedContextFailures, ATimeLimitOfItsOwnIsReported) {
  std::atomic<int> reported = 0;
  runtime rt({.threads = 1, .on_unhandled_exception = [&](const unhandled_exception&) { ++reported; }});
  for (const bool stopped_later : {false, true}) {
    reported = 0;
    rt.run([&] {
      isolated_context job("job", [] { timeout(1ms, [] { this_fiber::sleep_for(1h); }); });
      while (!job.done()) this_fiber::sleep_for(1ms);
      if (stopped_later) job.request_stop();
    });
    EXPECT_EQ(reported, 1) << stopped_later;
  }
}

TEST_P(IsolatedContext, MisuseIsTold) {
  EXPECT_THROW(isolated_context("outside", [] {}), std::system_error);
  run([&] {
    isolated_context* self = nullptr;
    event made;
    isolated_context loop("loop", [&] {
      made.wait();
      EXPECT_THROW(self->join(), usage_error);
    });
    self = &loop;
    made.set();
    loop.join();
  });
}

TEST_P(IsolatedContext, RefusesToJoinItselfAtOnce) {
  run([] {
    for (int i = 0; i < 300; ++i) {
      std::allocator<isolated_context> memory;
      isolated_context* const self = memory.allocate(1);
      std::construct_at(self, "self", [self] { EXPECT_THROW(self->join(), usage_error); });
      self->join();
      std::destroy_at(self);
      memory.deallocate(self, 1);
    }
  });
}

void destroy_itself() {
  ulexite::run([] {
    event made, never;
    std::unique_ptr<isolated_context> self;
    self = std::make_unique<isolated_context>("self", [&] {
      made.wait();
      self.reset();
    });
    made.set();
    never.wait();
  });
}

TEST(IsolatedContextDeathTest, ReportsThatItIsDestroyedOnItsOwnThread) {
  use_threadsafe_death_tests();
  EXPECT_DEATH(destroy_itself(), "~isolated_context was called on its own thread");
}

}  // namespace
