#pragma once

// Shared by the tests that abuse the I/O layer: at the end the runtime holds the same resources as before.

#include "descriptor_limit.hpp"
#include "net_fixture.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/base/random.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>

namespace ulexite::test {

// Of the cases of this test: a new one each time, unless ULEXITE_TEST_SEED names one. Printed, so that a failure can be
// run again.
inline std::uint64_t test_seed() {
  const char* const given = std::getenv("ULEXITE_TEST_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("ULEXITE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

// The resources that the process, and the runtime of the calling fiber, hold at a time.
struct holdings {
  static holdings now() {
    const detail::runtime_state& here = detail::this_runtime_state();
    return {open_descriptors(), here.loop->registrations(), here.live()};
  }
  bool operator==(const holdings&) const = default;

  std::size_t descriptors, registrations, fibers;
};

inline void PrintTo(const holdings& held, std::ostream* to) {
  *to << held.descriptors << " descriptors, " << held.registrations << " registrations, " << held.fibers << " fibers";
}

// Over 1, 2 and 8 workers. A hang ends by the watchdog; stacks and lost wake-ups are looked after by RuntimeTest.
class AbuseTest : public RuntimeTest, public testing::WithParamInterface<std::size_t> {
 protected:
  // Runs `body` as the main fiber of a new runtime. Fibers that it left to end by themselves may do so.
  template <class Body>
  void in_runtime(Body body, runtime_options options = {}) {
    options.threads = GetParam();
    runtime& rt = make(std::move(options));
    rt.run([&] {
      const holdings before = holdings::now();
      body();
      const auto end = steady_clock::now() + bound;
      while (holdings::now() != before && steady_clock::now() < end) this_fiber::yield();
      EXPECT_EQ(holdings::now(), before);
    });
    end(rt, shutdown_mode::cancel);
  }
};

#define ULEXITE_ABUSE_WORKERS(Suite) INSTANTIATE_TEST_SUITE_P(Net, Suite, testing::Values(1, 2, 8), worker_count)

// A listener that serves `handler` as long as this lives, in fibers of the caller's runtime.
template <class Handler>
class service {
 public:
  explicit service(Handler handler, net::serve_options options = {.grace = {}}, const net::endpoint& at = loopback(),
                   net::listen_options how = {})
      : listener_(at, how),
        serving_(spawn([this, handler = std::move(handler), options = std::move(options)]() mutable {
          listener_.serve(group_, std::move(handler), options);
        })) {}
  ~service() {
    listener_.close();
    serving_.join();
  }
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  [[nodiscard]] const net::endpoint& at() const { return listener_.local_endpoint(); }
  [[nodiscard]] std::size_t connections() const { return group_.size(); }

 private:
  net::tcp_listener listener_;
  task_group group_{on_error::keep_going};
  join_handle<> serving_;
};

inline void echo(net::tcp_stream& stream) {
  char buffer[1000];
  while (const std::size_t got = stream.read_some(buffer, sizeof buffer)) stream.write(buffer, got);
}

// For serve_options::on_error where clients do as they like.
inline void ignore(const net::endpoint&, std::exception_ptr) {}  // NOLINT

inline void yield_times(std::uint32_t count) {
  while (count-- > 0) this_fiber::yield();
}

}  // namespace ulexite::test
