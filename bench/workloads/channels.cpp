// Channels, and selecting over them.

#include "common.hpp"

#include <mutex>
#include <optional>

namespace bench {

namespace {

void roundtrips(int n) {
  ux::channel<int> there, back;
  auto echo = ux::spawn([&] {
    for (int value : there) {
      float_work(1);
      back.send(value);
    }
  });
  for (int i = 0; i < n; ++i) {
    float_work(0);
    there.send(i);
    require(back.receive() == i, "pingpong: a wrong answer");
  }
  there.close();
  echo.join();
}

}  // namespace

void pingpong(int n) {
  const stopwatch watch;
  roundtrips(n);
  watch.per("ns_per_roundtrip", n);
}

void pairs8(int n) {
  const stopwatch watch;
  team(8, [&](int) { roundtrips(n / 8); });
  watch.per("ns_per_roundtrip", n);
}

void pipe(int producers, int consumers, int n) {
  const stopwatch watch;
  ux::channel<int> items(128);
  ux::mutex total_mutex;
  long total = 0;
  ux::task_group consuming;
  for (int c = 0; c < consumers; ++c)
    consuming.spawn([&] {
      long sum = 0;
      for (int value : items) {
        float_work(0);
        sum += value;
      }
      const std::lock_guard lock(total_mutex);
      total += sum;
    });
  const int share = n / producers;
  team(producers, [&](int) {
    for (int i = 0; i < share; ++i) {
      float_work(1);
      items.send(1);
    }
  });
  items.close();
  consuming.wait();
  require(total == share * producers, "pipe: items lost");
  watch.per("ns_per_item", n);
}

void select4(int n) {
  const stopwatch watch;
  ux::channel<int> channels[4];
  auto& [a, b, c, d] = channels;
  ux::task_group producing;
  for (auto& channel : channels)
    producing.spawn([&channel, n] {
      for (int i = 0; i < n / 4; ++i) {
        float_work(1);
        channel.send(i);
      }
    });
  long sum = 0;
  const auto take = [&](std::optional<int> value) { sum += *value; };
  for (int i = 0; i < n / 4 * 4; ++i) {
    float_work(0);
    ux::select(ux::on_receive(a, take), ux::on_receive(b, take), ux::on_receive(c, take), ux::on_receive(d, take));
  }
  producing.wait();
  require(sum == 4L * (n / 4) * (n / 4 - 1) / 2, "select4: items lost");
  watch.per("ns_per_op", n);
}

namespace {

void skynet_node(ux::channel<long>& out, long number, long size) {
  float_work(static_cast<int>(number));
  if (size == 1) return out.send(number);
  ux::channel<long> sums;
  for (long i = 0; i < 10; ++i)
    ux::spawn([&sums, number, size, i] { skynet_node(sums, number + i * (size / 10), size / 10); }).detach();
  long sum = 0;
  for (int i = 0; i < 10; ++i) sum += *sums.receive();
  out.send(sum);
}

}  // namespace

void skynet(int n) {
  require_power_of_ten(n);
  const stopwatch watch;
  ux::channel<long> result;
  ux::spawn([&] { skynet_node(result, 0, n); }).detach();
  require(*result.receive() == static_cast<long>(n) * (n - 1) / 2, "skynet: a wrong sum");
  watch.total();
}

}  // namespace bench
