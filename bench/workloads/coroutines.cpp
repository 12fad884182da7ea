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

ux::task<> park_at_one(ints& gate, ints&, ux::wait_group& up, ux::wait_group& down) {
  up.done();
  co_await ux::co_receive(gate);
  down.done();
}
ux::task<> park_at_two(ints& gate, ints& other, ux::wait_group& up, ux::wait_group& down) {
  up.done();
  co_await ux::co_select(ux::on_receive(gate), ux::on_receive(other));
  down.done();
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
  ints gate, other;
  ux::wait_group up(static_cast<std::size_t>(n)), down(static_cast<std::size_t>(n));
  const double resident = resident_bytes();
  const stopwatch creation;
  for (int i = 0; i < n; ++i)
    ux::spawn(in_select ? park_at_two : park_at_one, std::ref(gate), std::ref(other), std::ref(up), std::ref(down))
        .detach();
  up.wait();
  creation.per("create_ns", n);
  ux::this_fiber::sleep_for(std::chrono::milliseconds(10));
  put("rss_bytes_per_coroutine", (resident_bytes() - resident) / n);
  const stopwatch release;
  gate.close();
  down.wait();
  release.per("release_ns", n);
}

}  // namespace bench
