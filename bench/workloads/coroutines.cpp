// The workloads of fibers again with coroutines, which keep no stack while they wait.

#include "common.hpp"

#include <ulexite/coroutine.hpp>

#include <chrono>
#include <functional>

namespace bench {
namespace {

using ints = ux::channel<int>;

ux::task<> call(ints& there, ints& back, int n) {
  for (int i = 0; i < n; ++i) {
    float_work(0);
    co_await ux::co_send(there, i);
    require(co_await ux::co_receive(back) == i, "co_pingpong: a wrong answer");
  }
  there.close();
}
void answer(ints& there, ints& back) {
  for (const int value : there) {
    float_work(1);
    back.send(value);
  }
}
ux::task<> co_answer(ints& there, ints& back) {
  while (const auto value = co_await ux::co_receive(there)) {
    float_work(1);
    co_await ux::co_send(back, *value);
  }
}

ux::task<> nothing() {
  float_work(1);
  co_return;
}

struct meeting {
  ints gate, other;
  ux::wait_group up, down;
};
ux::task<> park_at_one(meeting& at) {
  at.up.done();
  co_await ux::co_receive(at.gate);
  at.down.done();
}
ux::task<> park_at_two(meeting& at) {
  at.up.done();
  co_await ux::co_select(ux::on_receive(at.gate), ux::on_receive(at.other));
  at.down.done();
}

}  // namespace

void co_pingpong(bool with_fiber, int n) {
  ints there, back;
  const stopwatch watch;
  auto echo = with_fiber ? ux::spawn(answer, std::ref(there), std::ref(back))
                         : ux::spawn(co_answer, std::ref(there), std::ref(back));
  ux::spawn(call, std::ref(there), std::ref(back), n).get();
  echo.get();
  watch.per("ns_per_roundtrip", n);
}

void co_spawn_wait(int n) {
  const stopwatch watch;
  for (int i = 0; i < n; ++i) {
    float_work(0);
    ux::co_spawn(nothing()).get();
  }
  watch.per("ns_per_coroutine", n);
}

void co_parked(bool in_select, int n) {
  meeting at;
  at.up.add(static_cast<std::size_t>(n));
  at.down.add(static_cast<std::size_t>(n));
  const double resident = resident_bytes();
  const stopwatch creation;
  for (int i = 0; i < n; ++i) ux::co_spawn(in_select ? park_at_two(at) : park_at_one(at)).detach();
  at.up.wait();
  creation.per("create_ns", n);
  ux::this_fiber::sleep_for(std::chrono::milliseconds(10));
  put("rss_bytes_per_coroutine", (resident_bytes() - resident) / n);
  const stopwatch release;
  at.gate.close();
  at.down.wait();
  release.per("release_ns", n);
}

}  // namespace bench
