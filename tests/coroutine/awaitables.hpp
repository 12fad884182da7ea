#pragma once

// One wait of each kind, for the tests that hold for all of them (awaitables_test.cpp).

#include "ways.hpp"

#include <ulexite/net/tcp.hpp>
#include <ulexite/net/udp.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace ulexite::test {

// An object, and a wait at it.
struct awaitable {
  awaitable() = default;
  awaitable(const awaitable&) = delete;
  awaitable& operator=(const awaitable&) = delete;
  virtual ~awaitable() = default;

  // Waits until it is let pass, and checks what it gets.
  virtual task<> wait() = 0;
  // Lets one wait pass that has begun or will begin. Called on any fiber or thread, which it does not block for long.
  virtual void let() = 0;
};

struct awaitable_kind {
  const char* name;
  const char* words;  // of a dump
  bool cancellable;   // whether a stop or a deadline ends the wait
  std::function<std::unique_ptr<awaitable>(runtime&)> make;
  bool alone = true;  // whether the fiber that waits does so without another fiber or thread of its runtime
};
inline std::ostream& operator<<(std::ostream& to, const awaitable_kind& kind) { return to << kind.name; }

namespace awaitables {

inline const auto must_not_run = [](auto&&...) { ADD_FAILURE() << "a case ran that was not chosen"; };
inline auto later() { return ulexite::steady_clock::now() + 1h; }

// An awaitable of two functions over an object: co_wait of it returns a task<>.
template <class Object, class Wait, class Let>
class simple final : public awaitable {
 public:
  template <class... A>
  simple(Wait wait, Let let, A&&... arguments)
      : object_(std::forward<A>(arguments)...), wait_(std::move(wait)), let_(std::move(let)) {}
  task<> wait() override { return wait_(object_); }
  void let() override { let_(object_); }

 private:
  Object object_;
  Wait wait_;
  Let let_;
};
template <class Object, class Wait, class Let, class... A>
auto over(Wait wait, Let let, A... arguments) {
  return [=](runtime&) -> std::unique_ptr<awaitable> {
    return std::make_unique<simple<Object, Wait, Let>>(wait, let, arguments...);
  };
}

// ---- channels ----

struct full_channel : channel<int> {
  full_channel() : channel<int>(1) { send(0); }
};
struct ends {
  std::pair<sender<int>, receiver<int>> of = make_channel<int>(1);
};
struct full_ends : ends {
  full_ends() { of.first.send(0); }
};
struct heard {
  broadcast<int> to{4};
  broadcast_receiver<int> from = to.subscribe();
};
struct seen {
  watch<int> to{0};
  watch_receiver<int> from = to.subscribe();
};

inline const auto put = [](channel<int>& into) { into.send(1); };
inline const auto drain = [](channel<int>& from) { (void)from.receive(); };

inline void add_channels(std::vector<awaitable_kind>& to) {
  const char* const receives = "to receive from channel";
  const char* const sends = "to send to channel";
  to.push_back({"receive", receives, true,
                over<channel<int>>([](auto& from) -> task<> { EXPECT_EQ(co_await co_receive(from), 1); }, put, 1u)});
  to.push_back({"receive_for", receives, true,
                over<channel<int>>(
                    [](auto& from) -> task<> {
                      int got = 0;
                      EXPECT_EQ(co_await co_receive_for(from, got, 1h), channel_status::ok);
                      EXPECT_EQ(got, 1);
                    },
                    put, 1u)});
  to.push_back({"receive_until", receives, true,
                over<channel<int>>(
                    [](auto& from) -> task<> {
                      int got = 0;
                      EXPECT_EQ(co_await co_receive_until(from, got, later()), channel_status::ok);
                      EXPECT_EQ(got, 1);
                    },
                    put, 1u)});
  to.push_back({"receiver", receives, true,
                over<ends>([](ends& both) -> task<> { EXPECT_EQ(co_await co_receive(both.of.second), 1); },
                           [](ends& both) { both.of.first.send(1); })});
  to.push_back({"broadcast", "to receive from broadcast", true,
                over<heard>([](heard& it) -> task<> { EXPECT_EQ(co_await co_receive(it.from), 1); },
                            [](heard& it) { it.to.send(1); })});
  to.push_back({"watch", "to receive from broadcast", true,
                over<seen>([](seen& it) -> task<> { EXPECT_EQ(co_await co_receive(it.from), 1); },
                           [](seen& it) { it.to.set(1); })});
  to.push_back({"send", sends, true, over<full_channel>([](auto& at) -> task<> { co_await co_send(at, 1); }, drain)});
  to.push_back({"send_for", sends, true,
                over<full_channel>(
                    [](auto& at) -> task<> {
                      int value = 1;
                      EXPECT_EQ(co_await co_send_for(at, value, 1h), channel_status::ok);
                    },
                    drain)});
  to.push_back({"send_until", sends, true,
                over<full_channel>(
                    [](auto& at) -> task<> {
                      int value = 1;
                      EXPECT_EQ(co_await co_send_until(at, value, later()), channel_status::ok);
                    },
                    drain)});
  to.push_back({"sender", sends, true,
                over<full_ends>([](ends& both) -> task<> { co_await co_send(both.of.first, 1); },
                                [](ends& both) { (void)both.of.second.receive(); })});
}

// ---- what opens, and what counts ----

struct event_at : ulexite::event {
  static constexpr const char* words = "for event";
};
struct auto_reset_event_at : auto_reset_event {
  static constexpr const char* words = "for auto_reset_event";
};
struct group_at : wait_group {
  static constexpr const char* words = "for wait_group";
  group_at() : wait_group(1) {}
  void set() { done(); }
};
struct latch_at : latch {
  static constexpr const char* words = "for latch";
  latch_at() : latch(1) {}
  void set() { count_down(); }
};
struct two_arrive : barrier<> {
  two_arrive() : barrier<>(2) {}
  std::optional<arrival_token> mine;
};

template <class Object>
void add_gate(std::vector<awaitable_kind>& to, std::array<const char*, 3> names) {
  const auto open = [](Object& of) { of.set(); };
  to.push_back({names[0], Object::words, true, over<Object>([](Object& of) -> task<> { co_await co_wait(of); }, open)});
  to.push_back({names[1], Object::words, true,
                over<Object>([](Object& of) -> task<> { EXPECT_TRUE(co_await co_wait_for(of, 1h)); }, open)});
  to.push_back({names[2], Object::words, true,
                over<Object>([](Object& of) -> task<> { EXPECT_TRUE(co_await co_wait_until(of, later())); }, open)});
}

inline void add_gates(std::vector<awaitable_kind>& to) {
  add_gate<event_at>(to, {"event", "event_for", "event_until"});
  add_gate<auto_reset_event_at>(to, {"auto_reset_event", "auto_reset_event_for", "auto_reset_event_until"});
  add_gate<group_at>(to, {"wait_group", "wait_group_for", "wait_group_until"});
  add_gate<latch_at>(to, {"latch", "latch_for", "latch_until"});
  to.push_back({"barrier", "at barrier", true,
                over<two_arrive>(
                    [](two_arrive& at) -> task<> {
                      if (!at.mine) at.mine.emplace(at.arrive());
                      co_await co_wait(at, std::move(*at.mine));  // if it throws, the token stays valid
                      at.mine.reset();
                    },
                    [](two_arrive& at) { (void)at.arrive(); })});
  using permits = counting_semaphore<>;
  const auto give = [](permits& of) { of.release(); };
  to.push_back({"acquire", "for semaphore", true,
                over<permits>([](permits& of) -> task<> { co_await co_acquire(of); }, give, 0)});
  to.push_back(
      {"try_acquire_for", "for semaphore", true,
       over<permits>([](permits& of) -> task<> { EXPECT_TRUE(co_await co_try_acquire_for(of, 1h)); }, give, 0)});
  to.push_back(
      {"try_acquire_until", "for semaphore", true,
       over<permits>([](permits& of) -> task<> { EXPECT_TRUE(co_await co_try_acquire_until(of, later())); }, give, 0)});
}

// ---- locks ----

// A lock that a plain thread holds until it lets go.
template <class Mutex>
class held {
 public:
  held()
      : holder_([this] {
          const std::lock_guard lock(guard);
          locked_.set();
          go_.wait();
        }) {
    locked_.wait();
  }
  ~held() { let(); }
  void let() {
    go_.set();
    const std::lock_guard lock(ending_);
    if (holder_.joinable()) holder_.join();
  }
  Mutex guard;

 private:
  ulexite::event locked_, go_;
  ulexite::mutex ending_;
  std::thread holder_;
};
struct condition {
  ulexite::mutex guard;
  condition_variable changed;
  bool go = false;
};
inline void change(condition& of) {
  const std::lock_guard lock(of.guard);
  of.go = true;
  of.changed.notify_one();
}

inline void add_locks(std::vector<awaitable_kind>& to) {
  const auto let = [](auto& of) { of.let(); };
  to.push_back({"lock", "for mutex", false,
                over<held<mutex>>(
                    [](auto& at) -> task<> {
                      const std::unique_lock<mutex> lock = co_await co_lock(at.guard);
                      EXPECT_TRUE(lock.owns_lock());
                    },
                    let)});
  to.push_back({"lock_of_shared_mutex", "for shared_mutex", false,
                over<held<shared_mutex>>(
                    [](auto& at) -> task<> {
                      const std::unique_lock<shared_mutex> lock = co_await co_lock(at.guard);
                      EXPECT_TRUE(lock.owns_lock());
                    },
                    let)});
  to.push_back({"lock_shared", "for shared_mutex", false,
                over<held<shared_mutex>>(
                    [](auto& at) -> task<> {
                      const std::shared_lock<shared_mutex> lock = co_await co_lock_shared(at.guard);
                      EXPECT_TRUE(lock.owns_lock());
                    },
                    let)});
  const char* const words = "for condition_variable";
  to.push_back({"condition", words, false,
                over<condition>(
                    [](condition& at) -> task<> {
                      auto lock = co_await co_lock(at.guard);
                      while (!at.go) co_await co_wait(at.changed, lock);
                      EXPECT_TRUE(lock.owns_lock());
                    },
                    change)});
  to.push_back({"condition_with_predicate", words, false,
                over<condition>(
                    [](condition& at) -> task<> {
                      auto lock = co_await co_lock(at.guard);
                      co_await co_wait(at.changed, lock, [&at] { return at.go; });
                      EXPECT_TRUE(lock.owns_lock());
                    },
                    change)});
  to.push_back({"condition_for", words, true,
                over<condition>(
                    [](condition& at) -> task<> {
                      auto lock = co_await co_lock(at.guard);
                      while (!at.go) EXPECT_EQ(co_await co_wait_for(at.changed, lock, 1h), std::cv_status::no_timeout);
                    },
                    change)});
  to.push_back({"condition_until", words, true,
                over<condition>(
                    [](condition& at) -> task<> {
                      auto lock = co_await co_lock(at.guard);
                      while (!at.go)
                        EXPECT_EQ(co_await co_wait_until(at.changed, lock, later()), std::cv_status::no_timeout);
                    },
                    change)});
}

// ---- results of others ----

struct result_of_a_promise {
  promise<int> of;
  future<int> mine = of.get_future();
};
struct shared_result : result_of_a_promise {
  shared_future<int> all = mine.share();
};
// A fiber that waits until it is let pass.
struct child {
  ulexite::event go;
  join_handle<int> handle;
  explicit child(runtime& rt)
      : handle(rt.spawn([this]() -> task<int> {
          const shield until_let;
          co_await co_wait(go);
          co_return 1;
        })) {}
  ~child() {
    go.set();
    if (handle.joinable()) handle.join();
  }
};

template <class Wait>
auto over_child(Wait wait) {
  return [wait](runtime& rt) -> std::unique_ptr<awaitable> {
    const auto let = [](child& of) { of.go.set(); };
    return std::make_unique<simple<child, Wait, decltype(let)>>(wait, let, rt);
  };
}

inline void add_results(std::vector<awaitable_kind>& to) {
  const auto satisfy = [](auto& it) { it.of.set_value(1); };
  to.push_back({"future", "for future", false,
                over<result_of_a_promise>(
                    [](auto& it) -> task<> {
                      co_await co_wait(it.mine);
                      EXPECT_EQ(it.mine.get(), 1);
                    },
                    satisfy)});
  to.push_back({"future_for", "for future", false,
                over<result_of_a_promise>(
                    [](auto& it) -> task<> { EXPECT_EQ(co_await co_wait_for(it.mine, 1h), std::future_status::ready); },
                    satisfy)});
  to.push_back(
      {"shared_future_until", "for future", false,
       over<shared_result>(
           [](auto& it) -> task<> { EXPECT_EQ(co_await co_wait_until(it.all, later()), std::future_status::ready); },
           satisfy)});
  to.push_back({"join_for", "for the end of fiber", false,
                over_child([](child& of) -> task<> { EXPECT_TRUE(co_await co_wait_for(of.handle, 1h)); })});
  to.push_back(
      {"future_get", "for future", false,
       over<result_of_a_promise>([](auto& it) -> task<> { EXPECT_EQ(co_await co_get(it.mine), 1); }, satisfy)});
  to.push_back({"shared_future", "for future", false,
                over<shared_result>(
                    [](auto& it) -> task<> {
                      co_await co_wait(it.all);
                      EXPECT_EQ(co_await co_get(it.all), 1);
                    },
                    satisfy)});
  to.push_back(
      {"join", "for the end of fiber", false, over_child([](child& of) -> task<> { co_await co_join(of.handle); })});
  to.push_back({"get", "for the end of fiber", false,
                over_child([](child& of) -> task<> { EXPECT_EQ(co_await co_get(of.handle), 1); })});
  to.push_back({"on_fiber", "for the end of fiber", true,
                over<ulexite::event>(
                    [](auto& go) -> task<> {
                      EXPECT_EQ(co_await on_fiber([&] {
                                  go.wait();
                                  return 1;
                                }),
                                1);
                    },
                    [](auto& go) { go.set(); }),
                false});
}

}  // namespace awaitables
}  // namespace ulexite::test
