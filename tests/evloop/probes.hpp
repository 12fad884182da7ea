#pragma once

// Events that record what the loop does with them, and bounded ways to wait.

#include <ulexite/evloop/event_loop.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ulexite::test {

using detail::direction;
using detail::event;
using detail::event_list;
using detail::event_loop;
using detail::fd_source;
using detail::registrant;
using detail::timer_event;

inline constexpr std::int64_t millisecond = 1'000'000;
inline constexpr std::int64_t second = 1000 * millisecond;

inline std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The one bound of every wait: much longer than anything here takes, on a slow machine under a sanitizer too.
inline constexpr std::int64_t bound = 20 * second;

// True when `condition` came true in time.
template <class Condition>
bool eventually(Condition condition) {
  for (const std::int64_t end = now() + bound; !condition(); std::this_thread::yield()) {
    if (now() > end) return false;
  }
  return true;
}

// An event that goes idle -> armed -> claimed -> delivered. Only an armed one can be claimed.
template <class Event>
struct probe : Event {
  enum state : int { idle, armed, claimed, delivered };

  probe() {
    Event::claim = [](event& self) noexcept {
      int expected = armed;
      return static_cast<probe&>(static_cast<Event&>(self)).now_is.compare_exchange_strong(expected, claimed);
    };
  }
  void prepare() { now_is = armed; }
  // Somebody else takes it: the loop's claim must fail from now on. False: the loop was first.
  bool take_away() {
    int expected = armed;
    return now_is.compare_exchange_strong(expected, idle);
  }

  std::atomic<int> now_is{idle};
};

using fd_probe = probe<event>;
using timer_probe = probe<timer_event>;

inline std::vector<event*> contents(event_list& list) {
  std::vector<event*> items;
  while (event* item = list.pop()) items.push_back(item);
  return items;
}

inline std::vector<event*> poll(event_loop& loop) {
  event_list ready;
  loop.poll(ready);
  return contents(ready);
}

// wait, ended by a timer if nothing else ends it; that is a failure.
inline std::vector<event*> wait(event_loop& loop) {
  timer_probe guard;
  guard.prepare();
  loop.arm(guard, now() + bound, 0);
  event_list ready;
  loop.wait(ready);
  EXPECT_TRUE(loop.cancel(guard)) << "nothing ended the wait";
  return contents(ready);
}

// Waits until something has fired.
inline std::vector<event*> wait_for_events(event_loop& loop) {
  std::vector<event*> events;
  const std::int64_t end = now() + bound;
  while (events.empty() && now() < end) events = wait(loop);
  return events;
}

// Returns when the thread sleeps in the kernel (or after a bound: it is an aid to meet an interleaving, not a check).
inline void until_asleep(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  const std::int64_t end = now() + second;
  while (now() < end) {
    std::string line;
    std::getline(std::ifstream(path), line);
    const auto name_end = line.rfind(')');
    if (name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0) return;
    std::this_thread::yield();
  }
}

// How often the thread went to sleep in the kernel: unchanged means nothing woke it.
inline std::string sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches")) return line;
  }
  return "";
}

inline pid_t thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// A thread that turns the loop with wait, and marks what comes out as delivered, until it is destroyed.
class turner {
 public:
  explicit turner(event_loop& loop) : loop_(loop), thread_([this] { run(); }) {
    EXPECT_TRUE(eventually([this] { return id_.load() != 0; }));
  }
  ~turner() {
    stop_ = true;
    loop_.wake();
    thread_.join();
  }

  pid_t id() const { return id_; }
  long turns() const { return turns_; }

  // How to tell the kinds of events apart: timers lie in a list of their own here.
  std::atomic<bool> timers{false};

 private:
  void run() {
    id_ = thread_id();
    while (!stop_) {
      event_list ready;
      loop_.wait(ready);
      while (event* item = ready.pop()) {
        if (timers) {
          static_cast<timer_probe*>(item)->now_is = timer_probe::delivered;
        } else {
          static_cast<fd_probe*>(item)->now_is = fd_probe::delivered;
        }
      }
      ++turns_;
    }
  }

  event_loop& loop_;
  std::atomic<bool> stop_{false};
  std::atomic<pid_t> id_{0};
  std::atomic<long> turns_{0};
  std::thread thread_;
};

// Two connected non-blocking ends.
struct channel_pair {
  static channel_pair sockets() {
    channel_pair pair;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.ends), 0);
    return pair;
  }
  // ends[0] reads, ends[1] writes.
  static channel_pair pipe() {
    channel_pair pair;
    EXPECT_EQ(pipe2(pair.ends, O_NONBLOCK | O_CLOEXEC), 0);
    return pair;
  }
  channel_pair() = default;
  channel_pair(channel_pair&& other) noexcept
      : ends{std::exchange(other.ends[0], -1), std::exchange(other.ends[1], -1)} {}
  ~channel_pair() {
    shut(0);
    shut(1);
  }
  void shut(int end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
  void send(std::string_view text = "x") const {
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), ssize_t(text.size()));
  }
  std::string receive(std::size_t most = 100) const {
    std::string text(most, ' ');
    const ssize_t got = ::read(ends[0], text.data(), most);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }
  int ends[2] = {-1, -1};
};

inline void close(event_loop& loop, fd_source& source) {
  event_list woken;
  loop.close(source, woken);
  EXPECT_TRUE(woken.empty());
}

}  // namespace ulexite::test
