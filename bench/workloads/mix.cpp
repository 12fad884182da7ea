// What users feel on a busy runtime: how late a timer, echoes over loopback and a wake from outside are.

#include "common.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace bench {

using namespace std::chrono_literals;

namespace {

constexpr int connections = 64;
constexpr std::int64_t most_time = 3'000'000'000;  // ns, for a mix in which each sample takes very long

// A kind of load, which the fibers of `busy` put on the runtime until `over`.
void add_load(ux::task_group& busy, const std::string& load, const std::atomic<bool>& over) {
  if (load == "spawns") {  // waves of short fibers
    busy.spawn([&over] {
      while (!over) team(1000, [](int) {});
    });
  } else if (load == "timers") {
    for (int i = 0; i < 2000; ++i)
      busy.spawn([&over] {
        while (!over) ux::this_fiber::sleep_for(1ms);
      });
  } else {  // "16x100": 16 fibers compute for 100 us and yield
    const std::size_t cross = load.find('x');
    const std::int64_t quantum = std::stoi(load.substr(cross + 1)) * 1000;
    for (int i = std::stoi(load); i > 0; --i)
      busy.spawn([&over, quantum] {
        while (!over) {
          compute(quantum);
          ux::this_fiber::yield();
        }
      });
  }
}

// Calls sample() n times, or for as long as a mix may take, and collects the times.
template <class F>
void sample(std::vector<std::int64_t>& times, int n, F once) {
  const std::int64_t end = now_ns() + most_time;
  for (int i = 0; i < n && now_ns() < end; ++i) times.push_back(once());
}

void serve_echo(ux::net::tcp_stream& peer) {
  for (char byte; peer.read_some(&byte, 1) == 1;) peer.write(&byte, 1);
}

std::vector<std::int64_t> echo(const ux::net::endpoint& server, int n) {
  std::vector<std::int64_t> times;
  ux::net::tcp_stream stream = ux::net::tcp_stream::connect(server);
  sample(times, n, [&] {
    ux::this_fiber::sleep_for(1ms);
    const std::int64_t start = now_ns();
    char byte = 'x';
    stream.write(&byte, 1);
    require(stream.read_some(&byte, 1) == 1, "mix: no echo");
    return now_ns() - start;
  });
  return times;
}

}  // namespace

// A timer of 1 ms, an echo on each of 64 connections, and a send by a plain thread, each n times, a millisecond apart.
void mix(const std::string& load, int n) {
  std::atomic<bool> over{false};
  std::vector<std::int64_t> ticks, echoes, wakes;
  ux::net::tcp_listener listener(ux::net::endpoint::ip("127.0.0.1", 0));
  ux::channel<std::int64_t> sent(1);
  std::thread outside;
  ux::mutex mutex;  // of echoes
  ux::scope([&](ux::task_group& busy) {
    add_load(busy, load, over);
    ux::scope([&](ux::task_group& server) {
      server.spawn([&] { listener.serve(server, serve_echo); });
      ux::scope([&](ux::task_group& measured) {
        measured.spawn([&] {
          sample(ticks, n, [] {
            const std::int64_t start = now_ns();
            ux::this_fiber::sleep_for(1ms);
            return now_ns() - start - 1'000'000;
          });
        });
        for (int i = 0; i < connections; ++i)
          measured.spawn([&] {
            const std::vector<std::int64_t> times = echo(listener.local_endpoint(), n);
            const std::lock_guard lock(mutex);
            echoes.insert(echoes.end(), times.begin(), times.end());
          });
        measured.spawn([&] {
          for (std::int64_t time : sent) wakes.push_back(now_ns() - time);
        });
        outside = std::thread([&] {
          const std::int64_t end = now_ns() + most_time;
          for (int i = 0; i < n && now_ns() < end; ++i) {
            std::this_thread::sleep_for(1ms);
            sent.send(now_ns());
          }
          sent.close();
        });
      });
      listener.close();
    });
    over = true;
  });
  outside.join();
  put_percentiles("tick", ticks);
  put_percentiles("echo", echoes);
  put_percentiles("wake", wakes);
}

}  // namespace bench
