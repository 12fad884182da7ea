// All kinds of load together, evenly, for a long time: the measured values must stay the same.
//
//   soak --seconds 1800 --threads 2 >soak.tsv
//
// prints a line at each sixtieth of the time, and fails at the end if memory, descriptors, threads or a 99th percentile
// have grown. With --leak 1 it leaks, to show that it can fail.
#include "samples.hpp"

#include <ulexite.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

namespace ux = ulexite;
namespace net = ulexite::net;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

// A wrong result ends the program immediately.
void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::_Exit(3);
}

struct town {
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> rounds{0};
  soak::latencies echo, timers;
};

void again_and_again(town& here, auto body) {
  while (!here.over) {
    body();
    ++here.rounds;
  }
}

// ---- the loads ----

void pass_messages(town& here) {
  again_and_again(here, [] {
    ux::channel<int> plain, buffered(16);
    ux::task_group stages;
    stages.spawn([&] {
      for (int i = 0; i < 500; ++i) plain.send(i);
      plain.close();
    });
    stages.spawn([&] {
      for (const int i : plain) buffered.send(2 * i);
      buffered.close();
    });
    int sum = 0;
    for (const int i : buffered) sum += i;
    stages.wait();
    require(sum == 499 * 500, "every message arrives once");
    ux::this_fiber::sleep_for(5ms);
  });
}

void sleep_often(town& here, int number) {
  again_and_again(here, [&] {
    const auto time = std::chrono::milliseconds(1 + (number * 7 + here.rounds) % 40);
    const auto due = clock_type::now() + time;
    ux::this_fiber::sleep_for(time);
    here.timers.add(clock_type::now() - due);
  });
}

void answer(net::tcp_stream& client) {
  char data[4096];
  std::error_code error;
  while (const std::size_t got = client.read_some(data, sizeof data, error)) client.write(std::string_view(data, got));
}

void talk(town& here, const net::endpoint& server, int number) {
  again_and_again(here, [&] {
    auto stream = net::tcp_stream::connect(server);
    const std::string said(static_cast<std::size_t>(1 + (number * 97) % 2000), static_cast<char>('a' + number % 26));
    std::string heard(said.size(), '\0');
    for (int i = 0; i < 50; ++i) {
      const auto begun = clock_type::now();
      stream.write(said);
      require(stream.read(heard.data(), heard.size()) == heard.size() && heard == said, "the echo is what was said");
      here.echo.add(clock_type::now() - begun);
      ux::this_fiber::sleep_for(2ms);
    }
  });
}

void block(town& here) {
  again_and_again(here, [] {
    require(ux::blocking([] {
              std::this_thread::sleep_for(1ms);
              return 5;
            }) == 5,
            "a blocking call gives its result");
    ux::this_fiber::sleep_for(10ms);
  });
}

void spawn_storms(town& here) {
  again_and_again(here, [] {
    std::atomic<int> ran{0};
    ux::task_group storm;
    for (int i = 0; i < 5'000; ++i)
      storm.spawn([&ran, i] {
        if (i % 4 == 0) ux::this_fiber::yield();
        ++ran;
      });
    storm.wait();
    require(ran == 5'000, "every fiber runs once");
    ux::this_fiber::sleep_for(100ms);
  });
}

void cancel(town& here) {
  again_and_again(here, [] {
    ux::channel<int> empty;
    ux::counting_semaphore<> none(0);
    ux::task_group waiting;
    for (int i = 0; i < 60; ++i)
      waiting.spawn([&, i] {
        switch (i % 4) {
          case 0: empty.receive(); break;
          case 1: none.acquire(); break;
          case 2: ux::this_fiber::sleep_for(1h); break;
          default: ux::select(ux::on_receive(empty), ux::after(1h)); break;
        }
      });
    ux::this_fiber::sleep_for(3ms);
    waiting.request_stop();
    waiting.wait();
    ux::this_fiber::sleep_for(20ms);
  });
}

void live(town& here) {
  net::tcp_listener listener(net::endpoint::ip("127.0.0.1", 0));
  ux::task_group connections;
  ux::task_group server, loads;
  server.spawn([&] { listener.serve(connections, answer); });
  for (int i = 0; i < 4; ++i) loads.spawn([&] { pass_messages(here); });
  for (int i = 0; i < 200; ++i) loads.spawn([&here, i] { sleep_often(here, i); });
  for (int i = 0; i < 20; ++i) loads.spawn([&, i] { talk(here, listener.local_endpoint(), i); });
  for (int i = 0; i < 2; ++i) loads.spawn([&] { block(here); });
  loads.spawn([&] { spawn_storms(here); });
  for (int i = 0; i < 2; ++i) loads.spawn([&] { cancel(here); });
  loads.wait();
  listener.close();
  server.wait();
}

}  // namespace

int main(int argc, char** argv) {
  long seconds = 60;
  std::size_t threads = 2;
  bool leak = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::atol(argv[i + 1]);
    if (!std::strcmp(argv[i], "--threads")) threads = std::strtoull(argv[i + 1], nullptr, 10);
    if (!std::strcmp(argv[i], "--leak")) leak = std::atol(argv[i + 1]) != 0;
  }
  constexpr int samples = 60;
  town here;
  soak::record record;
  std::vector<std::string> leaked;
  ux::runtime rt({.threads = threads});
  auto loads = rt.spawn([&] { live(here); });
  const auto begun = clock_type::now();
  std::printf("second\trss_kib\tdescriptors\tthreads\techo_p99_us\ttimer_p99_us\trounds\n");
  for (int i = 1; i <= samples; ++i) {
    std::this_thread::sleep_until(begun + std::chrono::milliseconds(seconds * 1000 / samples) * i);
    const soak::sample now = soak::take(here.echo, here.timers);
    std::printf("%.0f\t%ld\t%ld\t%ld\t%ld\t%ld\t%llu\n",
                std::chrono::duration<double>(clock_type::now() - begun).count(), now.rss, now.descriptors, now.threads,
                now.echo, now.timers, static_cast<unsigned long long>(here.rounds.exchange(0)));
    std::fflush(stdout);
    record.add(now);
    if (leak) leaked.emplace_back(256 * 1024, static_cast<char>(::dup(0)));
  }
  here.over = true;
  loads.join();
  require(rt.metrics().lost_wakeups == 0, "no wake-up was lost and rescued");
  require(rt.metrics().fibers_live == 0, "no fiber is left");
  return record.judge() ? 0 : 1;
}
