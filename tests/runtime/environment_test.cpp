// Values of environment variables that are wrong, and those that are right. Each needs a process that has not read it.

#include "support/runtime_fixture.hpp"

#include <ulexite/base/perturb.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using testing::ExitedWithCode;

class Environment : public testing::Test {
 protected:
  Environment() { use_threadsafe_death_tests(); }

  // Runs a program in which the variable has the value. It exits with 1 if its runtime measures.
  [[noreturn]] static void run_with(const char* variable, const char* value) {
    const watchdog dog("Environment");
    ::setenv(variable, value, 1);
    runtime rt({.threads = 1});
    rt.run([] { spawn([] {}).join(); });
    std::_Exit(rt.times().run.count() != 0 ? 1 : 0);
  }
};

TEST_F(Environment, AWrongValueIsReported) {
  EXPECT_EXIT(run_with("ULEXITE_MEASURE", "yes"), ExitedWithCode(0), "^ulexite: ULEXITE_MEASURE=yes is not 0 or 1");
  EXPECT_EXIT(run_with("ULEXITE_STACK_GUARDS", "none"), ExitedWithCode(0),
              "^ulexite: ULEXITE_STACK_GUARDS=none is not install, mprotect or canary: it is ignored");
  for (const std::string wrong : {"-5", "12 guards", "18446744073709551616"})
    EXPECT_EXIT(run_with("ULEXITE_STACK_GUARD_BUDGET", wrong.c_str()), ExitedWithCode(0),
                "^ulexite: ULEXITE_STACK_GUARD_BUDGET=" + wrong + " is not a number");
  EXPECT_EXIT(run_with("ULEXITE_DUMP", "/nonexistent/dump"), ExitedWithCode(0),
              "^ulexite: ULEXITE_DUMP: /nonexistent/dump cannot be written \\(No such file or directory\\)");
  if (detail::perturbed)
    EXPECT_EXIT(run_with("ULEXITE_SEED", "x"), ExitedWithCode(0), "^ulexite: ULEXITE_SEED=x is not a number");
}

TEST_F(Environment, ARightValueIsNot) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("ulexite_environment_" + std::to_string(::getpid()))).string();
  EXPECT_EXIT(run_with("ULEXITE_MEASURE", "1"), ExitedWithCode(1), "^$");
  for (const char* const off : {"0", ""}) EXPECT_EXIT(run_with("ULEXITE_MEASURE", off), ExitedWithCode(0), "^$");
  for (const char* const kind : {"install", "mprotect", ""})
    EXPECT_EXIT(run_with("ULEXITE_STACK_GUARDS", kind), ExitedWithCode(0), "^$");
  EXPECT_EXIT(run_with("ULEXITE_STACK_GUARD_BUDGET", "100"), ExitedWithCode(0), "^$");
  EXPECT_EXIT(run_with("ULEXITE_DUMP", file.c_str()), ExitedWithCode(0), "^$");
  EXPECT_EXIT(run_with("ULEXITE_SEED", "42"), ExitedWithCode(0), "^$");
  std::filesystem::remove(file);
}

}  // namespace
