// Dumps and traces of a runtime with fibers that are always active: they wait for each other in all ways, change their
// names, are spawned and end. A dump must not touch what is destroyed, and each fiber goes on as if there were no dump.

#include "stress/stress.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>

#include <mutex>
#include <sstream>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::stress;

struct churn {
  program& test;
  mutex guard;
  channel<int> values{4}, answers;
  std::atomic<bool> over{false};
  std::atomic<long> sent{0}, received{0}, dumps{0};

  explicit churn(program& owner) : test(owner) {}

  void serve() {
    while (const auto value = values.receive()) {
      ++received;
      const std::lock_guard lock(guard);
      if (*value % 16 == 0) this_fiber::yield();
    }
  }

  void ask(detail::random random) {
    while (!over) {
      this_fiber::set_name("asker " + std::to_string(random.below(1000)));
      task_group children;
      for (std::uint32_t i = random.below(4); i > 0; --i)
        children.spawn(fiber_options{.name = "child"}, [&, i] {
          if (i % 2 == 0) this_fiber::sleep_for(std::chrono::microseconds(50));
          values.send(static_cast<int>(i));
          ++sent;
        });
      children.spawn(
          [](int turns) {
            for (; turns > 0; --turns) this_fiber::yield();
          },
          3);
      spawn({.name = "joined"}, [&] { this_fiber::yield(); }).join();
      children.wait();
      const std::lock_guard lock(guard);
      test.moved();
    }
  }

  void record(runtime& rt) {
    while (!over) {
      rt.start_trace({.events_per_worker = 256});
      std::this_thread::sleep_for(3ms);
      std::ostringstream text;
      rt.write_trace(text);
      rt.stop_trace();
      test.check(text.str().find("traceEvents") != std::string::npos, "an empty trace");
    }
  }

  void look(const runtime& rt, bool json) {
    while (!over) {
      std::ostringstream text;
      json ? rt.dump_json(text) : rt.dump(text, {.backtraces = dumps % 2 == 0});
      test.check(text.str().find(json ? "fibers_live" : "ulexite runtime: ") != std::string::npos, "an empty dump");
      ++dumps;
      this_fiber::sleep_for(1ms);
    }
  }
};

void round(program& test) {
  churn all(test);
  runtime rt({.threads = test.threads});
  test.show(&rt);
  std::thread outside([&] { all.look(rt, false); });
  std::thread recorder([&] { all.record(rt); });
  rt.run([&] {
    task_group askers, servers;
    for (int i = 0; i < 4; ++i) servers.spawn([&] { all.serve(); });
    detail::random random = test.random();
    for (int i = 0; i < 12; ++i)
      askers.spawn([&all](detail::random own) { all.ask(own); }, detail::random(random.below(1u << 30)));
    auto looker = spawn([&] { all.look(rt, true); });
    this_fiber::sleep_for(300ms);
    while (all.dumps == 0) this_fiber::sleep_for(1ms);
    all.over = true;
    askers.wait();
    all.values.close();
    servers.wait();
    looker.join();
  });
  outside.join();
  recorder.join();
  test.check(all.sent == all.received, "values were lost", all.sent - all.received);
  test.check(all.dumps > 0, "no dump");
  test.drain(rt);
}

}  // namespace

int main(int argc, char** argv) {
  program test(argc, argv);
  while (test.another_round()) round(test);
  return test.report();
}
