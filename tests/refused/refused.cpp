// What must not compile without a word, and the words. refused.py compiles this file, and looks for each comment's text
// in an error that comes from the comment's line.

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace ux = ulexite;
using namespace std::chrono_literals;

struct immovable {
  immovable() = default;
  immovable(const immovable&) = delete;
};

struct alignas(64) line {};
ux::task<> aligned(ux::channel<line>& lines) {
  (void)co_await co_receive(lines);  // REFUSED: must not be aligned to more than two pointers
}

void channels(ux::channel<int>& numbers, int& n) {
  ux::channel<void> nothing;          // REFUSED: take std::monostate for void
  ux::channel<int&> references;       // REFUSED: a pointer or std::reference_wrapper for a reference
  ux::channel<const int> constants;   // REFUSED: T must not be const
  ux::channel<immovable> never_sent;  // REFUSED: T must be movable
  numbers.try_send(n);                // REFUSED: nodiscard
  numbers.receive_for(n, 1s);         // REFUSED: nodiscard
}

void servers(ux::net::tcp_listener& listener, ux::task_group& group) {
  listener.serve(group, [](ux::net::tcp_stream) {});  // REFUSED: no matching function
}

void flags(const char* name) {
  const ux::event ready("ready");            // REFUSED: no matching
  const ux::auto_reset_event changed(name);  // REFUSED: no matching
  const ux::event set(true);                 // ACCEPTED: a bool
}

int&& temporary();

void results() {
  ux::spawn([] { return immovable(); });     // REFUSED: the result of a fiber must be
  ux::spawn(temporary);                      // REFUSED: the result of a fiber must be
  ux::when_any([] { return immovable(); });  // REFUSED: each result of when_any must be
  ux::blocking([] { return immovable(); });  // REFUSED: the result of blocking must be
}

void handlers(ux::channel<int>& numbers, ux::join_handle<>& fiber, std::stop_token token) {
  (void)ux::on_receive(numbers, [](int) {});  // REFUSED: takes a std::optional<T>
  (void)ux::on_send(numbers, 1, [](int) {});  // REFUSED: takes no arguments
  (void)ux::after(1s, [](double) {});         // REFUSED: takes no arguments
  (void)ux::on_join(fiber, [](int) {});       // REFUSED: takes no arguments
  (void)ux::on_stop(token, [](bool) {});      // REFUSED: takes no arguments
  (void)ux::otherwise([](std::size_t) {});    // REFUSED: takes no arguments
}

void dropped(ux::event& event, ux::latch& latch, ux::wait_group& group, ux::join_handle<>& fiber,
             ux::future<int>& value) {
  ux::deadline_scope(1s);  // REFUSED: nodiscard
  ux::shield();            // REFUSED: nodiscard
  event.wait_for(1s);      // REFUSED: nodiscard
  latch.wait_for(1s);      // REFUSED: nodiscard
  group.wait_for(1s);      // REFUSED: nodiscard
  group.spawn([] {});      // REFUSED: use task_group::spawn
  fiber.wait_for(1s);      // REFUSED: nodiscard
  value.wait_for(1s);      // REFUSED: nodiscard
}

ux::task<> coroutine();

void coroutines_that_would_not_run(ux::channel<int>& numbers, std::vector<int>& all) {
  const auto read = [](std::optional<int>) { return coroutine(); };
  ux::select(ux::after(1s, coroutine));                       // REFUSED: a coroutine would not run here
  ux::select(ux::on_receive(numbers, read));                  // REFUSED: a coroutine would not run here
  ux::parallel_for(all, [](int) { return coroutine(); });     // REFUSED: a coroutine would not run here
  ux::parallel_invoke([] { return coroutine(); }, [] {});     // REFUSED: a coroutine would not run here
  ux::isolated_context("alone", [] { return coroutine(); });  // REFUSED: a coroutine would not run here
  ux::when_any([] {}, [] { return coroutine(); });            // REFUSED: when_any would drop a coroutine before it runs
  (void)ux::timeout(1s, coroutine);                           // REFUSED: await it in the block of a deadline_scope
  (void)ux::try_for(1s, [] { return coroutine(); });          // REFUSED: await it in the block of a deadline_scope
  (void)ux::scope([](auto&) { return coroutine(); });         // REFUSED: use co_scope
  (void)ux::blocking(coroutine);                              // REFUSED: would not run on the other thread
  ux::when_any(std::vector{coroutine});                       // REFUSED: when_any would drop a coroutine before it runs
}

ux::task<> no_awaitables(ux::join_handle<>& handle, ux::mutex& mutex, ux::task<>& other) {
  co_await handle;       // REFUSED: write co_get(handle)
  co_await mutex;        // REFUSED: write co_get(handle)
  co_await other;        // REFUSED: std::move(task)
  ux::await(handle);     // REFUSED: await takes a task
  ux::await(other);      // REFUSED: await takes a task
  co_await coroutine();  // ACCEPTED: a task that has no name
}

void accepted() {
  ux::spawn([] {});  // ACCEPTED: its fiber goes on by itself
}

void former_names(int fd, const ux::runtime_metrics& numbers) {
  ux::net::wait_readable(fd);                        // REFUSED: use wait_fd(fd, interest::read)
  (void)ux::net::tcp_stream::connect("host", 80);    // REFUSED: use connect(net::address(host, port), options, ...)
  const ux::migration_guard pinned;                  // REFUSED: use no_migration_scope
  const ux::file read("name", ux::os::open_mode{});  // REFUSED: use ulexite::os::file
  (void)numbers.rescued_wakeups;                     // REFUSED: use lost_wakeups
  (void)ux::shutdown_mode::stop;                     // REFUSED: use abandon
}
