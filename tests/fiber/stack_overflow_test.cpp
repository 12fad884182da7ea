#include <ulexite/base/sanitizers.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/stack_pool.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <source_location>
#include <string>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;
using ulexite::detail::check_stack_canary;
using ulexite::detail::count_stack_guards;
using ulexite::detail::fiber_identity;
using ulexite::detail::install_death_reports;
using ulexite::detail::signal_stack;
using ulexite::detail::stack;
using ulexite::detail::stack_pool;

constexpr std::size_t kib = 1024;

// A process decides once on the kind of its guards. So each death is the death of a new process, not of a fork.
class StackOverflow : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The handler's whole output, as far as it is the same everywhere.
std::string report(const std::string& who, const std::string& where) {
  return "^ulexite: stack overflow " + who + " \\(stack of 65536 bytes" + where + "\\): address 0x[0-9a-f]+\n$";
}
const std::string here = ", spawned at [^ ]*stack_overflow_test.cpp:[0-9]+";

void write_byte(char* address) { *const_cast<volatile char*>(address) = 1; }

// Without UndefinedBehaviorSanitizer, which would report it in its own line.
__attribute__((no_sanitize("undefined"))) void write_to_null() {
  char* volatile nowhere = nullptr;
  *const_cast<volatile char*>(nowhere) = 1;
}

// A fiber with this name is on a stack of 64 KiB.
stack& stand(const char* name, std::source_location where = std::source_location::current()) {
  static fiber_identity identity;
  identity = {7, name, where};
  stack& one = *stack_pool::of_size(64 * kib).take();
  one.owner.store(&identity, std::memory_order_release);  // the tests' own thread reads it
  return one;
}

void write_below(const stack& stack, std::size_t bytes) { write_byte(stack.low - bytes); }

struct prepared {
  prepared() { install_death_reports(); }
  signal_stack own;
};

TEST_F(StackOverflow, NamesTheFiberItsStackAndWhereItWasSpawned) {
  EXPECT_EXIT(
      {
        prepared thread;
        write_below(stand("reader"), 1);
      },
      KilledBySignal(SIGSEGV), report("in fiber #7 'reader'", here));
}

TEST_F(StackOverflow, LeavesOutWhatIsNotKnown) {
  EXPECT_EXIT(
      {
        prepared thread;
        write_below(stand(nullptr, std::source_location{}), 1);
      },
      KilledBySignal(SIGSEGV), report("in fiber #7", ""));
  EXPECT_EXIT(
      {
        prepared thread;
        write_below(*stack_pool::of_size(64 * kib).take(), 1);
      },
      KilledBySignal(SIGSEGV), report("by no fiber", ""));
}

TEST_F(StackOverflow, TheGuardReachesFromTheLowestUsableByteToTheNextStack) {
  EXPECT_EXIT(
      {
        prepared thread;
        stack& one = stand("deep");
        write_byte(one.low);
        write_below(one, one.guard);
      },
      KilledBySignal(SIGSEGV), report("in fiber #7 'deep'", here));
}

TEST_F(StackOverflow, IsReportedOnEveryThreadWithASignalStack) {
  EXPECT_EXIT(
      {
        install_death_reports();
        std::thread([] {
          signal_stack own;
          write_below(stand("elsewhere"), 1);
        }).join();
      },
      KilledBySignal(SIGSEGV), report("in fiber #7 'elsewhere'", here));
}

TEST_F(StackOverflow, IsFoundInEveryStackOfManySlabs) {
  EXPECT_EXIT(
      {
        prepared thread;
        stack* list = stack_pool::of_size(64 * kib).take(5000);
        while (list->next) list = list->next;
        write_below(*list, 1);
      },
      KilledBySignal(SIGSEGV), report("by no fiber", ""));
}

TEST_F(StackOverflow, IsFoundInAStackLargerThanASlab) {
  EXPECT_EXIT(
      {
        prepared thread;
        stack* const two = stack_pool::of_size(256 * kib * kib).take(2);
        write_below(*two->next, 1);
      },
      KilledBySignal(SIGSEGV), "^ulexite: stack overflow by no fiber \\(stack of 268435456 bytes\\): address 0x");
}

// NOLINTNEXTLINE(misc-no-recursion): that is the test
[[gnu::noinline]] int recurse(int depth) {
  if (depth < 0) return 0;
  volatile char frame[512];
  frame[depth & 511] = static_cast<char>(depth);
  return recurse(depth + 1) + frame[(depth + 1) & 511];
}

void recurse_for_ever() { std::exit(recurse(0)); }

// AddressSanitizer prints a line about swapcontext before ours: then the pattern has no "^".
TEST_F(StackOverflow, OfARealRecursionIsReported) {
  EXPECT_EXIT(
      {
        prepared thread;
        stack& one = stand("recursive");
        static ucontext_t back;
        static ucontext_t deep;
        getcontext(&deep);
        deep.uc_stack.ss_sp = one.low;
        deep.uc_stack.ss_size = one.size();
        deep.uc_link = &back;
        makecontext(&deep, recurse_for_ever, 0);
        swapcontext(&back, &deep);
      },
      KilledBySignal(SIGSEGV), report("in fiber #7 'recursive'", here).substr(ULEXITE_ASAN || ULEXITE_TSAN));
}

TEST_F(StackOverflow, GuardsSurviveATrim) {
  EXPECT_EXIT(
      {
        prepared thread;
        stack_pool& pool = stack_pool::of_size(64 * kib);
        pool.give(pool.take(100));  // neighbours, cleaned by one call across their guards
        if (pool.trim(true) != 100) std::exit(1);
        write_below(stand("trimmed"), 1);
      },
      KilledBySignal(SIGSEGV), report("in fiber #7 'trimmed'", here));
}

// The other faults.

bool dies_of_the_fault(int status) {
#if ULEXITE_ASAN || ULEXITE_TSAN
  // The sanitizer's handler was there before ours: it writes a long report and exits.
  return WIFEXITED(status) && WEXITSTATUS(status) != 0;
#else
  return KilledBySignal(SIGSEGV)(status);
#endif
}
const char* const no_line = ULEXITE_ASAN || ULEXITE_TSAN ? "Sanitizer.*SEGV" : "^$";

TEST_F(StackOverflow, OtherFaultsKillWithoutALineOfOurs) {
  EXPECT_EXIT(
      {
        prepared thread;
        stand("innocent");
        write_to_null();
      },
      dies_of_the_fault, no_line);
}

TEST_F(StackOverflow, ASignalSentByAProcessKills) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it as a fault
        prepared thread;
        ::kill(::getpid(), SIGSEGV);
        std::exit(0);
      },
      KilledBySignal(SIGSEGV), "^$");
}

void tell_and_exit(int signal) { std::_Exit(signal == SIGSEGV ? 42 : 1); }

void tell_address_and_exit(int, siginfo_t* info, void*) { std::_Exit(info->si_addr == nullptr ? 43 : 1); }

TEST_F(StackOverflow, OtherFaultsReachTheEarlierHandler) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, tell_and_exit);
        prepared thread;
        write_to_null();
      },
      ExitedWithCode(42), "^$");
  EXPECT_EXIT(
      {
        struct sigaction earlier{};
        earlier.sa_sigaction = tell_address_and_exit;
        earlier.sa_flags = SA_SIGINFO;
        ::sigaction(SIGSEGV, &earlier, nullptr);
        prepared thread;
        write_to_null();
      },
      ExitedWithCode(43), "^$");
}

// The kinds of guards.

TEST_F(StackOverflow, IsReportedWithGuardsByMprotect) {
  EXPECT_EXIT(
      {
        ::setenv("ULEXITE_STACK_GUARDS", "mprotect", 1);
        prepared thread;
        stack_pool& pool = stack_pool::of_size(64 * kib);
        pool.give(pool.take(100));
        if (pool.trim(true) != 100) std::exit(1);
        stack& one = stand("protected");
        write_byte(one.low);
        if (count_stack_guards().protected_ != 100 || count_stack_guards().installed != 0) std::exit(2);
        write_below(one, 1);
      },
      KilledBySignal(SIGSEGV), report("in fiber #7 'protected'", here));
}

TEST_F(StackOverflow, GuardsByMprotectKeepToTheirBudget) {
  EXPECT_EXIT(
      {
        ::setenv("ULEXITE_STACK_GUARDS", "mprotect", 1);
        ::setenv("ULEXITE_STACK_GUARD_BUDGET", "5", 1);
        stack* list = stack_pool::of_size(64 * kib).take(20);
        if (list->canary) std::exit(1);
        while (list->next) list = list->next;
        if (!list->canary) std::exit(2);
        std::exit(count_stack_guards().protected_ == 5 && count_stack_guards().canaries == 15 ? 0 : 3);
      },
      ExitedWithCode(0), "^ulexite: no guard pages for further stacks \\(5 made by mprotect\\)[^\n]*\n$");
}

TEST_F(StackOverflow, IsFoundByTheCanaryWhenTheStackIsGiven) {
  EXPECT_EXIT(
      {
        ::setenv("ULEXITE_STACK_GUARDS", "canary", 1);
        stack& one = stand("sloppy");
        write_below(one, 1);
        stack_pool::of_size(64 * kib).give(&one);
      },
      KilledBySignal(SIGABRT),
      "ulexite: stack overflow found in fiber #7 'sloppy' \\(stack of 65536 bytes" + here +
          "\\): the guard word was overwritten\n$");
}

TEST_F(StackOverflow, CanariesSurviveATrim) {
  EXPECT_EXIT(
      {
        ::setenv("ULEXITE_STACK_GUARDS", "canary", 1);
        stack_pool& pool = stack_pool::of_size(64 * kib);
        pool.give(pool.take(100));
        if (pool.trim(true) != 100) std::exit(1);
        stack* const list = pool.take(100);
        for (stack* each = list; each; each = each->next) {
          write_byte(each->low);
          check_stack_canary(*each);
        }
        pool.give(list);
        std::exit(count_stack_guards().canaries == 100 ? 0 : 2);
      },
      ExitedWithCode(0), "^ulexite: no guard pages");
}

// Signal stacks.

TEST(SignalStack, IsTheThreadsOwnForItsLife) {
  std::thread([] {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    stack_t before{};
    ASSERT_EQ(::sigaltstack(&none, &before), 0);  // a sanitizer may have given the thread one
    {
      signal_stack own;
      stack_t present{};
      ::sigaltstack(nullptr, &present);
      EXPECT_FALSE(present.ss_flags & SS_DISABLE);
      EXPECT_GE(present.ss_size, 64 * kib);
    }
    stack_t after{};
    ::sigaltstack(nullptr, &after);
    EXPECT_TRUE(after.ss_flags & SS_DISABLE);
    ::sigaltstack(&before, nullptr);
  }).join();
}

TEST(SignalStack, KeepsTheOneThatIsThere) {
  std::thread([] {
    const std::size_t size = 256 * kib;
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t foreign{};
    foreign.ss_sp = memory;
    foreign.ss_size = size;
    stack_t before{};
    ASSERT_EQ(::sigaltstack(&foreign, &before), 0);
    {
      signal_stack own;
    }
    stack_t present{};
    ::sigaltstack(nullptr, &present);
    EXPECT_EQ(present.ss_sp, memory);
    ::sigaltstack(&before, nullptr);
    ::munmap(memory, size);
  }).join();
}

}  // namespace
