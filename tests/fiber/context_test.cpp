// The bare switch, without a runtime.

#include "support/watchdog.hpp"

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/fiber/switch.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cfenv>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite::detail;

// A computation on a stack of its own that is resumed by hand, from any thread.
class coroutine {
 public:
  explicit coroutine(std::function<void(coroutine&)> body, unsigned stack_offset = 0)
      : body_(std::move(body)), offset_(stack_offset), stack_(stack_pool::of_size(64 * 1024).take()) {}
  ~coroutine() {
    EXPECT_TRUE(ended_);
    stack_pool::of_size(64 * 1024).give(stack_);
  }
  coroutine(const coroutine&) = delete;
  coroutine& operator=(const coroutine&) = delete;

  void resume() {
    switch_thread thread;
    thread_ = &thread;
    if (!started_) {
      started_ = true;
      starting = this;
      start_context(resumer_, *stack_, offset_, &coroutine::main, thread);
    } else {
      switch_context(resumer_, self_, thread);
    }
    if (ended_) forget_context(*stack_);
  }
  void suspend() { thread_ = &switch_context(self_, resumer_, *thread_); }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  static void main(switch_thread& thread) {
    coroutine& self = *starting;
    self.thread_ = &thread;
    self.body_(self);
    self.ended_ = true;
    switch_context(self.self_, self.resumer_, *self.thread_, departure::final);
  }

  static inline coroutine* starting = nullptr;

  std::function<void(coroutine&)> body_;
  const unsigned offset_;
  stack* const stack_;
  context resumer_, self_;
  switch_thread* thread_ = nullptr;
  bool started_ = false, ended_ = false;
};

template <class F>
void on_another_thread(F function) {
  std::thread(function).join();
}

TEST(Context, GoesToAndFro) {
  std::string trace;
  coroutine one([&](coroutine& self) {
    trace += "a";
    self.suspend();
    trace += "b";
    self.suspend();
    trace += "c";
  });
  while (!one.ended()) {
    one.resume();
    trace += "-";
  }
  EXPECT_EQ(trace, "a-b-c-");
}

TEST(Context, HasAUsableAlignedStackWhateverItsColour) {
  for (unsigned stack_offset = 0; stack_offset < 40; ++stack_offset) {
    coroutine one(
        [](coroutine& self) {
          alignas(16) volatile char local[16];
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&local[0]) % 16, 0u);
          volatile char large[40 * 1024];
          large[0] = 1;
          self.suspend();
          EXPECT_EQ(large[0], 1);
        },
        stack_offset);
    one.resume();
    one.resume();
  }
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

TEST(Context, KeepsErrnoForEachComputation) {
  coroutine one([&](coroutine& self) {
    set_errno(11);
    self.suspend();
    EXPECT_EQ(get_errno(), 11);
    set_errno(12);
    self.suspend();
    EXPECT_EQ(get_errno(), 12);
  });
  set_errno(21);
  one.resume();
  EXPECT_EQ(get_errno(), 21);
  on_another_thread([&] {
    set_errno(31);
    one.resume();
    EXPECT_EQ(get_errno(), 31);
  });
  one.resume();
  EXPECT_EQ(get_errno(), 21);
}

TEST(Context, KeepsTheExceptionsInFlightForEachComputation) {
  coroutine one([&](coroutine& self) {
    EXPECT_FALSE(std::current_exception());
    try {
      try {
        throw std::runtime_error("inner");
      } catch (...) {
        self.suspend();
        throw;
      }
    } catch (const std::exception& e) {
      EXPECT_STREQ(e.what(), "inner");
      self.suspend();
      EXPECT_STREQ(e.what(), "inner");
    }
    EXPECT_FALSE(std::current_exception());
  });
  try {
    try {
      throw std::logic_error("outer");
    } catch (...) {
      one.resume();
      throw;
    }
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "outer");
    on_another_thread([&] {
      one.resume();
      EXPECT_FALSE(std::current_exception());
    });
    EXPECT_TRUE(std::current_exception());
    one.resume();
  }
  EXPECT_FALSE(std::current_exception());
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(Context, KeepsTheRoundingModeForEachComputation) {
  coroutine one([&](coroutine& self) {
    std::fesetround(FE_UPWARD);
    self.suspend();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    self.suspend();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  });
  one.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  on_another_thread([&] { one.resume(); });
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  one.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(Context, ResumesManyInAnyOrder) {
  std::vector<std::unique_ptr<coroutine>> all;
  int steps = 0;
  for (unsigned i = 0; i < 50; ++i)
    all.push_back(std::make_unique<coroutine>(
        [&steps, i](coroutine& self) {
          for (unsigned k = 0; k < i; ++k) {
            ++steps;
            self.suspend();
          }
        },
        i));
  for (bool again = true; again;) {
    again = false;
    for (auto& each : all) {
      if (each->ended()) continue;
      each->resume();
      again = true;
    }
  }
  EXPECT_EQ(steps, 49 * 50 / 2);
}

}  // namespace
