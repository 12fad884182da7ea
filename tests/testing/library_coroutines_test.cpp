// Channels, select and calls in children under chosen schedules, with coroutines and fibers mixed.

#include "library_kinds.hpp"

#include <ulexite.hpp>

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

namespace {

using namespace ulexite::test;
using ux::task;

void channel() {
  using value = std::unique_ptr<int>;
  ux::channel<value> ch(choose(3));
  std::set<int> sent, received;
  const auto took = [&](value v, std::map<int, int>& last) {
    if (!v) return;
    expect(received.insert(*v).second, "a value came twice");
    int& before = last[*v / 8];
    expect(before <= *v % 8, "values of one sender out of order");
    before = *v % 8;
  };
  const auto produce = [&](int who) -> task<> {
    for (int k = 1; k <= 3; ++k) {
      const int id = who * 8 + k;
      value v = std::make_unique<int>(id);
      bool ok = true;
      try {
        switch (choose(3)) {
          case 0: co_await co_send(ch, std::move(v)); break;
          case 1: ok = co_await co_send_for(ch, v, some_time()) == ux::channel_status::ok; break;
          case 2: {
            const ux::deadline_scope scope(some_time());
            ok = co_await co_send_until(ch, v, ux::steady_clock::now() + 1h) == ux::channel_status::ok;
          }
        }
      } catch (const ux::deadline_exceeded&) {
        expect(v != nullptr, "a send that was too late took the value");
        ok = false;
      }
      if (ok) sent.insert(id);
    }
  };
  const auto consume = [&](std::size_t times) -> task<> {
    std::map<int, int> last;
    for (; times != 0; --times) {
      value v;
      try {
        if (choose(2)) {
          (void)co_await co_receive_for(ch, v, some_time());
          took(std::move(v), last);
        } else {
          const ux::deadline_scope scope(some_time());
          auto got = co_await co_receive(ch);
          if (!got) co_return;
          took(std::move(*got), last);
        }
      } catch (const ux::deadline_exceeded&) {
      }
    }
  };
  std::vector<ux::join_handle<bool>> producers, consumers;
  for (int i = 0; i < 2; ++i) {
    producers.push_back(start([&, i] { return to_its_end_or_stop(produce(i)); }));
    consumers.push_back(start([&] { return to_its_end_or_stop(consume(4)); }));
  }
  if (choose(2)) producers[choose(2)].request_stop();
  if (choose(2)) consumers[choose(2)].request_stop();
  auto drain = start([&]() -> task<> {
    co_await ux::co_sleep_for(5ms);
    std::map<int, int> last;
    while (auto got = co_await co_receive(ch)) took(std::move(*got), last);
  });
  for (auto& each : producers) each.get();
  ch.close();
  for (auto& each : consumers) each.get();
  drain.get();
  expect(sent == received, "sent and received differ");
}

TEST(Library, ChannelOfBothKinds) { explore_library(channel); }

void close_wakes() {
  ux::channel<std::unique_ptr<int>> ch(choose(2));
  int sent = 0, refused = 0, received = 0, ended = 0;
  ux::task_group all;
  for (int i = 0; i < 2; ++i)
    start_in(all, [&]() -> task<> {
      for (int k = 0; k < 2; ++k) try {
          co_await co_send(ch, std::make_unique<int>(k));
          ++sent;
        } catch (const ux::channel_closed&) {
          ++refused;
        }
    });
  start_in(all, [&]() -> task<> {
    for (int k = 0; k < 2; ++k) {
      const auto got = co_await co_receive(ch);
      got ? ++received : ++ended;
    }
  });
  all.spawn([&] { ch.close(); });
  all.wait();
  while (ch.receive()) ++received;
  expect(sent == received && sent + refused == 4 && received + ended >= 2, "close: sums");
}

TEST(Library, CloseWakesBothKinds) { explore_library(close_wakes); }

void select() {
  ux::channel<int> a(choose(2)), b(choose(2));
  std::set<int> sent, received;
  const auto got = [&](std::optional<int> v) {
    if (v) expect(received.insert(*v).second, "a value came twice");
  };
  const auto work = [&](int who) -> task<> {
    for (int k = 0; k < 3; ++k) {
      const int v = who * 8 + k;
      const auto was_sent = [&] { expect(sent.insert(v).second, "sent twice"); };
      auto& first = choose(2) ? a : b;
      auto& second = &first == &a ? b : a;
      switch (choose(4)) {
        case 0:
          co_await ux::co_select(ux::on_receive(first, got), ux::on_send(second, v, was_sent), ux::after(some_time()));
          break;
        case 1:
          co_await ux::co_select(ux::in_order, ux::on_send(first, v, was_sent), ux::on_send(second, v, was_sent),
                                 ux::after(some_time()));
          break;
        case 2:
          co_await ux::co_select(ux::on_receive(first, got), ux::on_send(first, v, was_sent),
                                 ux::on_receive(second, got), ux::on_send(second, v, was_sent), ux::after(some_time()));
          break;
        case 3: {
          const ux::deadline_scope scope(some_time());
          try {
            co_await ux::co_select(ux::on_receive(first, got), ux::on_send(second, v, was_sent));
          } catch (const ux::deadline_exceeded&) {
          }
        }
      }
    }
  };
  std::vector<ux::join_handle<bool>> all;
  for (int i = 0; i < 3; ++i) all.push_back(start([&, i] { return to_its_end_or_stop(work(i)); }));
  if (choose(2)) all[choose(3)].request_stop();
  for (auto& each : all) each.get();
  int v;
  while (a.try_receive(v) == ux::channel_status::ok) got(v);
  while (b.try_receive(v) == ux::channel_status::ok) got(v);
  expect(sent == received, "select: sent and received differ");
}

TEST(Library, SelectOfBothKinds) { explore_library(select); }

void select_crossing() {
  ux::channel<int> a, b;
  int moved = 0;
  const auto cross = [&](ux::channel<int>& to, ux::channel<int>& from) -> task<> {
    for (int i = 0; i < 3; ++i)
      co_await ux::co_select(ux::on_send(to, i, [&] { ++moved; }), ux::on_receive(from, [&](auto&&) { ++moved; }));
  };
  ux::task_group all;
  start_in(all, [&] { return cross(a, b); });
  start_in(all, [&] { return cross(b, a); });
  all.wait();
  expect(moved == 6, "crossing: moves");
}

TEST(Library, SelectsOfBothKindsThatCross) { explore_library(select_crossing); }

void select_sources() {  // a join, a stop, a permit and an event as cases
  ux::counting_semaphore<> permits(0);
  ux::event opened;
  std::stop_source stop;
  auto joined = start([]() -> task<> { co_await ux::co_sleep_for(some_time()); });
  int came[4] = {};
  auto waiter = start([&]() -> task<> {
    while (came[0] + came[1] + came[2] + came[3] < 4) {
      const auto index = co_await ux::co_select(
          ux::when(came[0] == 0, ux::on_join(joined)), ux::when(came[1] == 0, ux::on_stop(stop.get_token())),
          ux::when(came[2] == 0, ux::on_acquire(permits)), ux::when(came[3] == 0, ux::on_set(opened)), ux::after(1h));
      expect(index < 4, "a lost wake-up");
      if (index < 4) ++came[index];
    }
  });
  ux::task_group others;
  start_in(others, [&]() -> task<> {
    co_await ux::co_sleep_for(some_time());
    stop.request_stop();
  });
  start_in(others, [&]() -> task<> {
    co_await ux::co_yield_now();
    permits.release();
    opened.set();
  });
  waiter.get();
  others.wait();
  expect(!permits.try_acquire(), "the permit was taken");
}

TEST(Library, SelectOfBothKindsAndSources) { explore_library(select_sources); }

void calls_in_children() {  // the child of a call has ended when its task goes on, whatever has ended the wait
  ux::event go;
  int returned = 0;
  const auto call = [&]() -> task<> {
    int inside = 0;
    std::exception_ptr why;
    const auto use = [&] {
      ++inside;
      try {
        go.wait();
      } catch (...) {
        const ux::shield to_the_end;
        ux::this_fiber::sleep_for(some_time());
        --inside;
        throw;
      }
      --inside;
    };
    try {
      const ux::deadline_scope limit(some_time());
      co_await ux::on_fiber(use);
      ++returned;
    } catch (...) {
      why = std::current_exception();
    }
    expect(inside == 0, "the child has not ended");
    if (why) std::rethrow_exception(why);
  };
  std::vector<ux::join_handle<bool>> callers;
  for (int i = 0; i < 2; ++i) callers.push_back(start([&] { return to_its_end_or_stop(call()); }));
  if (choose(2)) callers[choose(2)].request_stop();
  if (choose(2)) ux::this_fiber::sleep_for(some_time());
  go.set();
  int ended = 0;
  for (auto& each : callers) ended += each.get();
  expect(ended == returned, "the results of the calls");
}

TEST(Library, CallsInChildrenOfBothKinds) { explore_library(calls_in_children); }

}  // namespace
