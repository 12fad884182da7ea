// current_runtime() in a run.

#include <ulexite/interop/ulexite.h>
#include <ulexite.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <sstream>
#include <string>

namespace {

using namespace ulexite;
using ulexite::testing::explore;

TEST(RuntimeOfARun, IsNamedByItsFibers) {
  explore({.schedules = 20}, [] {
    runtime& own = current_runtime();
    concurrent_context account;
    this_fiber::migrate_to(account);
    this_fiber::migrate_to(own);
    ulx_strand* const strand = ulx_strand_new(nullptr, "s");
    EXPECT_EQ(ulx_migrate_to(strand), 0);
    EXPECT_EQ(ulx_migrate_to(nullptr), 0);
    EXPECT_EQ(ulx_strand_destroy(strand), 0);
    EXPECT_EQ(own.spawn([] { return &current_runtime(); }).get(), &own);
    EXPECT_EQ(run_in(own, [] { return 3; }), 3);
    EXPECT_THROW(own.run([] {}), usage_error);
    EXPECT_THROW(own.shutdown(shutdown_mode::abandon), usage_error);
    EXPECT_THROW(own.resize(2), usage_error);
  });
}

TEST(RuntimeOfARun, SpawnsByTheCInterface) {
  explore({.schedules = 50}, [] {
    const auto child = [](void*) -> intptr_t {
      EXPECT_NE(ulx_fiber_id(ulx_self()), 0u);
      return ulx_park(ULX_FOREVER);
    };
    ulx_fiber* const started = ulx_spawn(child, nullptr, nullptr);
    ulx_unpark(started);
    intptr_t result = -1;
    EXPECT_EQ(ulx_join(started, ULX_FOREVER, &result), 0);
    EXPECT_EQ(result, 0);
    ulx_fiber_release(started);
  });
}

TEST(RuntimeOfARun, IsInspected) {
  explore({.schedules = 20}, [] {
    runtime& own = current_runtime();
    own.start_trace();
    event end;
    task_group others;
    others.spawn([&] { end.wait(); });
    this_fiber::yield();
    std::ostringstream text, json, numbers, trace;
    own.dump(text);
    EXPECT_NE(text.str().find("fiber #2"), std::string::npos) << text.str();
    own.dump_json(json);
    EXPECT_NE(json.str().find("event"), std::string::npos);
    own.write_prometheus(numbers);
    EXPECT_NE(numbers.str().find("ulexite_"), std::string::npos);
    EXPECT_EQ(own.metrics().workers, 1u);
    own.stop_trace();
    own.write_trace(trace);
    EXPECT_FALSE(trace.str().empty());
    int seen = 0;
    {
      const stopped_world world(own);
      for_each_fiber(own, [&](const fiber_view&) { ++seen; });
    }
    EXPECT_EQ(seen, 2);
    end.set();
    others.wait();
  });
}

TEST(RuntimeOfARun, KeepsNoRequestToStopForTheNext) {
  explore({.schedules = 20}, [] {
    EXPECT_FALSE(this_fiber::stop_requested());
    current_runtime().request_stop();
    EXPECT_TRUE(this_fiber::stop_requested());
  });
}

// A yield or a sleep of the only thread would cost time, and on a busy machine much.
TEST(RuntimeOfARun, IsNotPerturbed) {
  if (!detail::perturbed) GTEST_SKIP() << "a build without ULEXITE_CHAOS";
  explore({.schedules = 2}, [] {
    const bool was = detail::set_perturbed(false);
    detail::set_perturbed(was);
    EXPECT_FALSE(was);
  });
  EXPECT_TRUE(detail::set_perturbed(true));
}

}  // namespace
