// The backend of the parallel_scheduler, as a library of senders calls it.

#include "support/mini_senders.hpp"
#define ULEXITE_SENDERS ::mini

#include "support/runtime_fixture.hpp"

#include <ulexite/interop/execution_backend.hpp>
#include <ulexite/sync/event.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace ue = ulexite::execution;

class ParallelBackend : public WorkersTest {};
ULEXITE_TEST_WORKERS(ParallelBackend);

struct proxy final : mini::parallel_scheduler_replacement::bulk_item_receiver_proxy {
  explicit proxy(std::size_t size) : calls(size) {}
  void set_value() noexcept override {
    fiber = in_fiber();
    done.set();
  }
  void set_error(std::exception_ptr) noexcept override {
    failed = true;
    done.set();
  }
  void set_stopped() noexcept override { ADD_FAILURE(); }
  void execute(std::size_t from, std::size_t until) noexcept override {
    if (until - from > most) most = until - from;
    for (; from < until; ++from) ++calls[from];
  }
  std::vector<std::atomic<int>> calls;
  std::atomic<std::size_t> most{0};
  bool fiber = false, failed = false;
  event done;
};

TEST_P(ParallelBackend, SchedulesFibers) {
  ue::parallel_backend backend(rt());
  proxy to(0);
  backend.schedule(to, {});
  to.done.wait();
  EXPECT_TRUE(to.fiber);
}

TEST_P(ParallelBackend, CallsEachPartOfABulkOnce) {
  ue::parallel_backend backend(rt());
  for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    for (const bool chunked : {true, false}) {
      proxy to(size);
      chunked ? backend.schedule_bulk_chunked(size, to, {}) : backend.schedule_bulk_unchunked(size, to, {});
      to.done.wait();
      EXPECT_TRUE(to.fiber);
      for (const auto& each : to.calls) EXPECT_EQ(each, 1);
      if (!chunked && size > 0) {
        EXPECT_EQ(to.most, 1u);
      }
    }
  }
}

TEST_P(ParallelBackend, ReportsARuntimeThatHasEnded) {
  runtime& ended = make(1);
  ue::parallel_backend backend(ended);
  end(ended, shutdown_mode::drain);
  proxy to(1);
  backend.schedule_bulk_chunked(1, to, {});
  to.done.wait();
  EXPECT_TRUE(to.failed);
}

}  // namespace
