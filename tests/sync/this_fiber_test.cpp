// The facts that a fiber can read about itself and its runtime.

#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <sstream>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ThisFiber : public WorkersTest {};
ULEXITE_TEST_WORKERS(ThisFiber);

TEST_P(ThisFiber, KnowsItsDeadline) {
  EXPECT_EQ(this_fiber::deadline(), std::nullopt);
  run([] {
    EXPECT_EQ(this_fiber::deadline(), std::nullopt);
    const auto later = steady_clock::now() + 1h;
    const deadline_scope outer(later);
    EXPECT_EQ(this_fiber::deadline(), later);
    EXPECT_EQ(spawn([] { return this_fiber::deadline(); }).get(), later);
    const deadline_scope inner(30min);
    EXPECT_LT(this_fiber::deadline(), later);
    const shield unheard;
    EXPECT_EQ(this_fiber::deadline(), std::nullopt);
  });
}

TEST_P(ThisFiber, MayHaveAnEmptyName) {
  run([] {
    this_fiber::set_name("named");
    this_fiber::set_name({});
    EXPECT_EQ(this_fiber::name(), "");
  });
}

TEST_P(ThisFiber, KnowsItsRuntime) {
  EXPECT_THROW((void)current_runtime(), std::system_error);
  run([&] {
    EXPECT_EQ(&current_runtime(), &rt());
    EXPECT_EQ(current_runtime().metrics().fibers_live, 1U);
    std::ostringstream text;
    current_runtime().dump(text);
    EXPECT_NE(text.str().find("main"), std::string::npos);
    EXPECT_THROW(current_runtime().shutdown(shutdown_mode::cancel), usage_error);
  });
}

// A computing fiber lets the others of its worker run from time to time.
TEST_P(ThisFiber, MakesRoom) {
  this_fiber::yield_if_requested();
  run([] {
    std::atomic<bool> ran{false};
    std::vector<join_handle<>> hogs;
    for (int i = 0; i < 16; ++i)
      hogs.push_back(spawn([&] {
        while (!ran) this_fiber::yield_if_requested();
      }));
    spawn([&] { ran = true; }).get();
    for (auto& each : hogs) each.get();
  });
}

}  // namespace
