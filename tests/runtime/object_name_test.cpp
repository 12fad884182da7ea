// What dumps write for the objects that have a name.

#include <ulexite.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;

std::string dump_of(const runtime& rt) {
  std::ostringstream out;
  rt.dump(out, {.backtraces = false});
  return out.str();
}

// A dump of a runtime with a fiber in `wait`, once that fiber waits. `before` makes it wait, and `release` ends that.
template <class Wait, class Release>
std::string dump_in(Wait wait, Release release, const std::function<void()>& before = [] {}) {
  runtime rt({.threads = 2});
  std::string text;
  rt.run([&] {
    before();
    auto waiter = spawn({.name = "waiter"}, wait);
    while ((text = dump_of(rt)).find("\"waiter\": waits") == std::string::npos) this_fiber::sleep_for(1ms);
    release();
    waiter.join();
  });
  return text;
}

bool has(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

TEST(ObjectName, IsInTheDumpsOfAllKindsOfWaits) {
  mutex locked;
  const object_name locked_name(locked, "table");
  const auto expect = [](const std::string& text, const std::string& what) {
    EXPECT_NE(text.find(what), std::string::npos) << what << " in\n" << text;
  };
  expect(dump_in([&] { std::lock_guard lock(locked); }, [&] { locked.unlock(); }, [&] { locked.lock(); }),
         " for mutex \"table\" 0x");

  shared_mutex shared;
  const object_name shared_name(shared, "routes");
  expect(dump_in([&] { std::shared_lock lock(shared); }, [&] { shared.unlock(); }, [&] { shared.lock(); }),
         " for shared_mutex \"routes\" 0x");

  channel<int> values, full(1);
  const object_name values_name(values, "jobs"), full_name(full, "results");
  expect(dump_in([&] { values.receive(); }, [&] { values.send(1); }), " to receive from channel \"jobs\" 0x");
  expect(dump_in([&] { select(on_receive(values, [](std::optional<int>) {})); }, [&] { values.send(1); }),
         " in a select, one of whose cases is at \"jobs\" 0x");
  full.send(1);
  expect(dump_in([&] { full.send(2); }, [&] { full.receive(); }), " to send to channel \"results\" 0x");

  event set;
  const object_name set_name(set, "ready");
  expect(dump_in([&] { set.wait(); }, [&] { set.set(); }), " for event \"ready\" 0x");

  counting_semaphore permits(0);
  const object_name permits_name(permits, "connections");
  expect(dump_in([&] { permits.acquire(); }, [&] { permits.release(); }), " for semaphore \"connections\" 0x");

  latch open(1);
  const object_name open_name(open, "started");
  expect(dump_in([&] { open.wait(); }, [&] { open.count_down(); }), " for latch \"started\" 0x");

  wait_group left(1);
  const object_name left_name(left, "requests");
  expect(dump_in([&] { left.wait(); }, [&] { left.done(); }), " for wait_group \"requests\" 0x");

  mutex guard;
  condition_variable changed;
  bool over = false;
  const object_name changed_name(changed, "changed");
  const auto wait = [&] {
    std::unique_lock lock(guard);
    changed.wait(lock, [&] { return over; });
  };
  const auto release = [&] {
    const std::lock_guard lock(guard);
    over = true;
    changed.notify_all();
  };
  expect(dump_in(wait, release), " for condition_variable \"changed\" 0x");
}

TEST(ObjectName, LastsAsLongAsItsValue) {
  struct session {
    event ready, done;
  } one;
  auto whole = std::make_unique<object_name>(one, "session");
  auto first = std::make_unique<object_name>(one.ready, "first");
  auto second = std::make_unique<object_name>(one.ready, "second");
  const auto text = [&] {
    one.ready.reset();
    return dump_in([&] { one.ready.wait(); }, [&] { one.ready.set(); });
  };
  EXPECT_TRUE(has(dump_in([&] { one.done.wait(); }, [&] { one.done.set(); }), "for event \"session\" 0x"));
  EXPECT_TRUE(has(text(), "for event \"second\" 0x"));
  second.reset();
  EXPECT_TRUE(has(text(), "for event \"first\" 0x"));
  first.reset();
  EXPECT_TRUE(has(text(), "for event \"session\" 0x"));
  whole.reset();
  EXPECT_TRUE(has(text(), "for event 0x"));
}

TEST(ObjectName, IsInJson) {
  event ready;
  const object_name name(ready, "ready");
  runtime rt({.threads = 1});
  std::ostringstream out;
  rt.run([&] {
    auto waiter = spawn([&] { ready.wait(); });
    this_fiber::yield();
    rt.dump_json(out);
    ready.set();
    waiter.join();
  });
  EXPECT_TRUE(has(out.str(), R"(for event \"ready\" 0x)")) << out.str();
}

TEST(ObjectName, IsInTheErrorsOfMutexes) {
  mutex plain;
  shared_mutex shared;
  const object_name plain_name(plain, "accounts"), shared_name(shared, "routes");
  const auto error_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const usage_error& error) {
      return error.what();
    }
    return {};
  };
  const std::lock_guard held(plain);
  const std::lock_guard written(shared);
  EXPECT_TRUE(has(error_of([&] { plain.lock(); }), "mutex::lock by its owner: \"accounts\" 0x"));
  EXPECT_TRUE(has(error_of([&] { shared.lock_shared(); }), "shared_mutex::lock_shared by its owner: \"routes\" 0x"));
  std::thread([&] {
    EXPECT_TRUE(has(error_of([&] { plain.unlock(); }), "mutex::unlock by another than its owner: \"accounts\" 0x"));
    EXPECT_TRUE(has(error_of([&] { shared.unlock(); }), "unlock by another than its owner: \"routes\" 0x"));
  }).join();
}

}  // namespace
