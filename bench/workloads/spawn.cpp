// Starting fibers and waiting for their end.

#include "common.hpp"

#include <atomic>
#include <tuple>
#include <vector>

namespace bench {
namespace {

void spawn_and_wait(int n) {
  ux::wait_group group;
  for (int i = 0; i < n; ++i) {
    float_work(0);
    group.add();
    ux::spawn([&group] {
      float_work(1);
      group.done();
    });
  }
  group.wait();
}

}  // namespace

void spawn_join(int n) {
  const stopwatch watch;
  spawn_and_wait(n);
  watch.per("ns_per_fiber", n);
}

void spawn_waves(int n) {
  const stopwatch watch;
  for (int i = 0; i < n / 1000; ++i) spawn_and_wait(1000);
  watch.per("ns_per_fiber", n);
}

void spawn_wait(int n) {
  const stopwatch watch;
  for (int i = 0; i < n; ++i) {
    float_work(0);
    ux::spawn([] { float_work(1); }).join();
  }
  watch.per("ns_per_fiber", n);
}

void spawn_batch(int n) {
  const stopwatch watch;
  for (int i = 0; i < n / 1000; ++i) {
    ux::task_group group;
    group.spawn_batch(1000, [](std::size_t) { float_work(1); });
    group.wait();
  }
  watch.per("ns_per_fiber", n);
}

// Batches of a thousand; the last of a batch to run says so.
void jobs(int n) {
  struct counting : ux::job {
    std::atomic<int>* left;
    ux::event* done;
  };
  const stopwatch watch;
  std::vector<counting> batch(1000);
  for (int i = 0; i < n / 1000; ++i) {
    std::atomic<int> left{1000};
    ux::event done;
    ux::job_list list;
    for (counting& each : batch) {
      each.run = [](ux::job* self) noexcept {
        float_work(1);
        auto& mine = static_cast<counting&>(*self);
        if (mine.left->fetch_sub(1, std::memory_order_acq_rel) == 1) mine.done->set();
      };
      each.left = &left;
      each.done = &done;
      list.push(each);
    }
    ux::schedule(std::move(list));
    done.wait();
  }
  watch.per("ns_per_job", n);
}

void when_all10(int n) {
  const stopwatch watch;
  const auto one = [] {
    float_work(1);
    return 1;
  };
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    float_work(0);
    std::apply([&](auto... values) { sum += (values + ...); },
               ux::when_all(one, one, one, one, one, one, one, one, one, one));
  }
  require(sum == 10 * n, "when_all10: a wrong sum");
  watch.per("ns_per_op", n);
}

}  // namespace bench
