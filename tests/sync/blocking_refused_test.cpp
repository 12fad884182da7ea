// The pool behind blocking() when the machine refuses threads: pthread_create of this program comes before the
// system's.

#include "support/waiting.hpp"

#include <ulexite/fiber/context.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/task_group.hpp>

#if !ULEXITE_ASAN && !ULEXITE_TSAN  // which have a pthread_create of their own

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace {
std::atomic<bool> refuses{false};
std::atomic<int> refused{0};
}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (!refuses) return real(thread, attributes, start, argument);
  ++refused;
  return EAGAIN;
}

namespace {

using namespace ulexite;
using namespace ulexite::test;

class BlockingRefused : public WorkersTest {
 protected:
  BlockingRefused() { refused = 0; }
  ~BlockingRefused() override { refuses = false; }

  // All workers that this runtime may have are there: none is missed later.
  void start_workers() {
    run([] {
      task_group all;
      std::atomic<std::size_t> here{0};
      for (std::size_t i = 0; i < GetParam(); ++i)
        all.spawn([&] {
          ++here;
          while (here < GetParam()) std::this_thread::yield();
        });
      all.wait();
    });
  }
};
ULEXITE_TEST_WORKERS(BlockingRefused);

TEST_P(BlockingRefused, WithoutAnyThreadTheCallIsNotMadeAndThrows) {
  start_workers();
  run([&] {
    refuses = true;
    bool called = false;
    try {
      blocking([&] { called = true; });
      ADD_FAILURE() << "there was a thread";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again);
    }
    EXPECT_FALSE(called);
    EXPECT_EQ(rt().metrics().blocking_queued, 0u);
    refuses = false;
    EXPECT_EQ(blocking([] { return 5; }), 5);
  });
}

TEST_P(BlockingRefused, OneThreadDoesItAll) {
  start_workers();
  run([&] {
    blocking([] {});
    refuses = true;
    std::atomic<int> done{0};
    task_group all;
    for (int i = 0; i < 50; ++i)
      all.spawn([&] {
        blocking([&] {
          ++done;
          while (refused == 0) std::this_thread::yield();  // or each could be over before the next call comes
        });
      });
    all.wait();
    EXPECT_EQ(done, 50);
    EXPECT_EQ(rt().metrics().blocking_threads, 1u);
    EXPECT_GT(refused, 0);
  });
}

TEST_P(BlockingRefused, InPlaceItIsAnOrdinaryCall) {
  start_workers();
  run([&] {
    refuses = true;
    EXPECT_TRUE(block_in_place([] { return in_fiber(); }));
    EXPECT_EQ(refused, 1);
    refuses = false;
    EXPECT_FALSE(block_in_place([] { return in_fiber(); }));
  });
}

}  // namespace

#endif
