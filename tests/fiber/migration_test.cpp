// The hazards of moving a computation to another thread, unless the switch moves the state too: each one as fibers meet
// it.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>

#include <cerrno>
#include <cfenv>
#include <exception>
#include <stdexcept>
#include <string>

#include <execinfo.h>
#include <unistd.h>
#include <unwind.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Migration : public WorkersTest {
 protected:
  // Runs body(i) in many fibers at a time that yield and sleep all the time. Returns after the last.
  template <class Body>
  void in_many(int count, Body body) {
    run([&] {
      task_group all;
      for (int i = 0; i < count; ++i) all.spawn([&body, i] { body(i); });
      all.wait();
    });
  }
};
ULEXITE_TEST_WORKERS(Migration);

// To another thread, if there is one.
void wander(int step) {
  if (step % 5 == 0) {
    this_fiber::sleep_for(std::chrono::microseconds(step % 50));
  } else {
    this_fiber::yield();
  }
}

[[gnu::noinline]] pid_t thread_now() { return ::gettid(); }

TEST_P(Migration, Happens) {
  if (GetParam() == 1) GTEST_SKIP() << "one worker only";
  std::atomic<int> moved{0};
  while (moved == 0)  // the other workers' threads may start late
    in_many(20, [&](int i) {
      const pid_t before = thread_now();
      for (int k = 0; k < 100; ++k) {
        wander(i + k);
        if (k % 10 == 0) hog_until([] { return false; }, 10us);
      }
      moved += thread_now() != before;
    });
}

// Not inlined: a compiler may reuse the address of errno after a switch, and this test is not about that.
[[gnu::noinline]] void set_errno(int value) {
  asm volatile("");
  errno = value;
}
[[gnu::noinline]] int get_errno() {
  asm volatile("");
  return errno;
}

TEST_P(Migration, ErrnoStaysWithTheFiber) {
  in_many(20, [](int i) {
    for (int k = 0; k < times(300); ++k) {
      set_errno(1000 + i);
      wander(i + k);
      ASSERT_EQ(get_errno(), 1000 + i);
    }
  });
}

TEST_P(Migration, TheExceptionBeingHandledStaysWithTheFiber) {
  in_many(20, [](int i) {
    for (int k = 0; k < times(200); ++k) {
      const std::string mine = std::to_string(i * 1000 + k);
      try {
        try {
          throw std::runtime_error(mine);
        } catch (const std::runtime_error&) {
          wander(i + k);
          try {
            throw i;  // nested
          } catch (int number) {
            wander(k);
            ASSERT_EQ(number, i);
          }
          throw;
        }
      } catch (const std::exception& e) {
        wander(i);
        ASSERT_EQ(e.what(), mine);
        ASSERT_TRUE(std::current_exception());
      }
      ASSERT_FALSE(std::current_exception());
    }
  });
}

struct yields_in_destructor {
  explicit yields_in_destructor(int number) : i(number) {}
  ~yields_in_destructor() {
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    wander(i);
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    try {
      throw 'x';
    } catch (char) {
      wander(i + 1);
    }
    EXPECT_EQ(std::uncaught_exceptions(), 1);
  }
  int i;
};

TEST_P(Migration, UncaughtExceptionsAreCountedPerFiber) {
  in_many(20, [](int i) {
    for (int k = 0; k < times(100); ++k) {
      ASSERT_EQ(std::uncaught_exceptions(), 0);
      try {
        const yields_in_destructor guard(i + k);
        throw std::runtime_error("unwinds");
      } catch (const std::runtime_error&) {
        ASSERT_EQ(std::uncaught_exceptions(), 0);
      }
      wander(i);
    }
  });
}

// A fiber that starts while another handles an exception sees none of it.
TEST_P(Migration, AFreshFiberHandlesNoException) {
  in_many(10, [](int i) {
    try {
      throw i;
    } catch (int) {
      for (int k = 0; k < 20; ++k) {
        spawn([] {
          EXPECT_FALSE(std::current_exception());
          EXPECT_EQ(std::uncaught_exceptions(), 0);
        }).join();
      }
    }
  });
}

constexpr int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

// As each of the units that compute rounds it: on x86-64 long double has one of its own.
struct thirds {
  double short_one;
  long double long_one;
  friend bool operator==(const thirds&, const thirds&) = default;
};
[[gnu::noinline]] thirds third() {
  volatile double one = 1;
  volatile long double long_one = 1;
  return {one / 3, long_one / 3};
}

TEST_P(Migration, TheRoundingModeStaysWithTheFiber) {
  const thirds usual = third();
  in_many(20, [&](int i) {
    const int mode = modes[i % 4];
    std::fesetround(mode);
    const thirds mine = third();
    if (mode == FE_UPWARD) {
      EXPECT_GT(mine.short_one, usual.short_one);  // the nearest is below 1/3 for double, above it for long double
    }
    if (mode == FE_DOWNWARD && sizeof(long double) > sizeof(double)) EXPECT_LE(mine.long_one, usual.long_one);
    for (int k = 0; k < times(200); ++k) {
      wander(i + k);
      ASSERT_EQ(std::fegetround(), mode);
      ASSERT_EQ(third(), mine);
#if defined(__x86_64__)
      ASSERT_EQ(_MM_GET_ROUNDING_MODE(), static_cast<unsigned>(mode) << 3);
#endif
    }
    std::fesetround(FE_TONEAREST);
  });
}

// A fiber that starts in the place of an ended one, or while another waits, has the mode of neither.
TEST_P(Migration, AFreshFiberRoundsAsUsual) {
  const thirds usual = third();
  in_many(10, [&](int i) {
    std::fesetround(modes[i % 4]);
    const thirds mine = third();
    for (int k = 0; k < times(50); ++k) {
      std::vector<join_handle<>> all;
      for (int n = 0; n < 4; ++n)
        all.push_back(spawn([&usual, n] {
          ASSERT_EQ(std::fegetround(), FE_TONEAREST);
          ASSERT_EQ(third(), usual);
          std::fesetround(modes[n]);  // and leaves it so
          if (n % 2 == 0) wander(n);
        }));
      for (auto& each : all) each.get();
      ASSERT_EQ(third(), mine);
    }
  });
  EXPECT_EQ(third(), usual);
}

TEST_P(Migration, AWorkerStartedByAFiberRoundsAsUsual) {
  run([] {
    std::fesetround(FE_UPWARD);
    std::atomic<bool> begun{false};
    auto other = spawn([&] {
      begun = true;
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    });
    if (GetParam() > 1) EXPECT_TRUE(hog_until([&] { return begun.load(); }));
    other.join();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  });
}

struct frames {
  int count = 0;
  static _Unwind_Reason_Code note(_Unwind_Context*, void* self) {
    return ++static_cast<frames*>(self)->count > 1000 ? _URC_END_OF_STACK : _URC_NO_REASON;
  }
};

TEST_P(Migration, BacktracesEndAtTheFibersBottom) {
  in_many(4, [](int i) {
    for (int k = 0; k < 5; ++k) {
      void* addresses[200];
      const int depth = ::backtrace(addresses, 200);
      EXPECT_GT(depth, 2);
      EXPECT_LT(depth, 100);
      frames seen;
      _Unwind_Backtrace(&frames::note, &seen);
      EXPECT_GT(seen.count, 2);
      EXPECT_LT(seen.count, 100);
      wander(i + k);
    }
  });
}

TEST_P(Migration, ExceptionsPassThroughDeepStacks) {
  struct deep {
    static int down(int depth, int i) {
      if (depth == 0) {
        wander(i);
        throw std::runtime_error("from the depth");
      }
      return down(depth - 1, i) + 1;
    }
  };
  in_many(10, [](int i) {
    for (int k = 0; k < 20; ++k) EXPECT_THROW(deep::down(100, i + k), std::runtime_error);
  });
}

}  // namespace
