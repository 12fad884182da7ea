#pragma once

// Shared by the tests that run the real code of an example in simulated worlds. These have the network of a
// deterministic run, with latency, short reads, resets and partitions.

#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>

namespace worlds {

namespace ux = ulexite;
namespace net = ulexite::net;
using namespace std::chrono_literals;
using ux::testing::choose;
using ux::testing::expect;

// Runs `world` on good and on bad networks. argv[1]: how many schedules of each kind; argv[2]: the seed.
// On networks that reset connections it is `on_bad_network`.
inline int run(int argc, char** argv, const std::function<void()>& world, const std::function<void()>& on_bad_network) {
  const std::size_t schedules = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const ux::testing::network_options networks[] = {
      {},
      {.latency = 1ms, .jitter = 20ms, .short_reads = true},
      {.jitter = 5ms, .short_reads = true, .resets = 40},
      {.latency = 3ms, .resets = 15, .buffer = 64},
  };
  for (const auto& network : networks) {
    try {
      const auto done =
          ux::testing::explore({.schedules = schedules, .seed = seed, .slowness = 2ms, .network = network},
                               network.resets == 0 ? world : on_bad_network);
      std::printf("%zu worlds, %.0f us each, %zu choices in the longest\n", done.schedules,
                  std::chrono::duration<double, std::micro>(done.time).count() / static_cast<double>(done.schedules),
                  static_cast<std::size_t>(done.longest));
    } catch (const ux::testing::schedule_failed& failed) {
      std::printf("network %td: %s\n", &network - networks, failed.what());
      return 1;
    }
  }
  return 0;
}

inline int run(int argc, char** argv, const std::function<void()>& world) { return run(argc, argv, world, world); }

// Perhaps cuts a server off for a while, or resets its connections.
inline void disturb(const net::endpoint& server) {
  switch (choose(3)) {
    case 1: {
      ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(20)));
      ux::testing::partition(server);
      ux::this_fiber::sleep_for(std::chrono::milliseconds(1 + choose(2) * 10'000));
      ux::testing::heal(server);
      break;
    }
    case 2: {
      ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(20)));
      ux::testing::reset_connections(server);
      break;
    }
    default: break;
  }
}

}  // namespace worlds
