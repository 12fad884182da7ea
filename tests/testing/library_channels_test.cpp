#include "library.hpp"

#include <ulexite.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

namespace {

using namespace ulexite::test;

void channel() {
  using value = std::unique_ptr<int>;
  struct state {
    explicit state(std::size_t room) : ch(room) {}
    ux::channel<value> ch;
    std::set<int> sent, received;
  } s(choose(3));
  const auto took = [&](value v, std::map<int, int>& last) {
    expect(v != nullptr, "a received value is null");
    if (!v) return;
    expect(s.received.insert(*v).second, "a value came twice");
    int& before = last[*v / 8];
    expect(before <= *v % 8, "values of one sender out of order");
    before = *v % 8;
  };
  const auto producer = [&](int who) {
    for (int k = 1; k <= 3; ++k) {
      value v = std::make_unique<int>(who * 8 + k);
      const int id = *v;
      bool ok = false;
      try {
        switch (choose(4)) {
          case 0:
            s.ch.send(std::move(v));
            ok = true;
            break;
          case 1:
            ok = s.ch.try_send(v) == ux::channel_status::ok;
            expect(ok == (v == nullptr), "try_send and its value");
            break;
          case 2:
            ok = s.ch.send_for(v, some_time()) == ux::channel_status::ok;
            expect(ok == (v == nullptr), "send_for and its value");
            break;
          case 3: {
            const ux::deadline_scope scope(some_time());
            try {
              ok = s.ch.send_until(v, ux::steady_clock::now() + 1h) == ux::channel_status::ok;
            } catch (const ux::deadline_exceeded&) {
              expect(v != nullptr, "a cancelled send took the value");
            }
          }
        }
      } catch (const ux::operation_cancelled&) {
        return;
      }
      if (ok) s.sent.insert(id);
    }
  };
  const auto consumer = [&] {
    std::map<int, int> last;
    for (int k = 0; k < 4; ++k) {
      value v;
      try {
        switch (choose(4)) {
          case 0: {
            const ux::deadline_scope scope(some_time());
            auto got = s.ch.receive();
            if (got) took(std::move(*got), last);
            break;
          }
          case 1:
            if (s.ch.try_receive(v) == ux::channel_status::ok) took(std::move(v), last);
            break;
          case 2:
            if (s.ch.receive_for(v, some_time()) == ux::channel_status::ok) took(std::move(v), last);
            break;
          case 3: {
            auto got = s.ch.receive();
            if (!got) return;
            took(std::move(*got), last);
          }
        }
      } catch (const ux::deadline_exceeded&) {
      } catch (const ux::operation_cancelled&) {
        return;
      }
    }
  };
  std::vector<ux::join_handle<>> producers, consumers;
  for (int i = 0; i < 2; ++i) producers.push_back(ux::spawn([&, i] { producer(i); }));
  for (int i = 0; i < 2; ++i) consumers.push_back(ux::spawn(consumer));
  if (choose(2)) producers[choose(2)].request_stop();
  if (choose(2)) consumers[choose(2)].request_stop();
  std::map<int, int> last;
  auto drain = ux::spawn([&] {
    ux::this_fiber::sleep_for(5ms);
    std::map<int, int> mine;
    while (auto got = s.ch.receive()) took(std::move(*got), mine);
  });
  for (auto& each : producers) each.get();
  s.ch.close();
  for (auto& each : consumers) each.get();
  drain.get();
  expect(s.sent == s.received, "sent and received differ");
}

template <class Case>
void one_case(Case&&) {}

TEST(Library, Channel) { explore_library(channel); }

void select() {
  struct state {
    state(std::size_t a, std::size_t b) : a(a), b(b) {}
    ux::channel<int> a, b;
    std::set<int> sent, received;
  } s(choose(2), choose(2));
  const auto got = [&](std::optional<int> v) {
    if (v) expect(s.received.insert(*v).second, "a value came twice");
  };
  const auto one = [&](int who) {
    for (int k = 0; k < 3; ++k) {
      int v = who * 8 + k;
      const int id = v;
      const auto sent = [&] { expect(s.sent.insert(id).second, "sent twice"); };
      auto* first = choose(2) ? &s.a : &s.b;
      auto* second = first == &s.a ? &s.b : &s.a;
      switch (choose(7)) {
        case 0: ux::select(ux::on_receive(*first, got), ux::on_send(*second, v, sent), ux::after(some_time())); break;
        case 1: ux::select(ux::on_send(*first, v, sent), ux::on_send(*second, v, sent), ux::after(some_time())); break;
        case 2: ux::select(ux::on_receive(*first, got), ux::on_receive(*second, got), ux::after(some_time())); break;
        case 3:
          ux::select(ux::in_order, ux::on_receive(*first, got), ux::on_send(*first, v, sent), ux::otherwise());
          break;
        case 4:
          ux::select(ux::on_receive(*first, got), ux::on_send(*first, v, sent), ux::on_receive(*second, got),
                     ux::on_send(*second, v, sent), ux::after(some_time()));
          break;
        case 5: {
          const ux::deadline_scope scope(some_time());
          try {
            ux::select(ux::on_receive(*first, got), ux::on_send(*second, v, sent));
          } catch (const ux::deadline_exceeded&) {
          }
          break;
        }
        case 6: {
          int x;
          if (first->receive_for(x, some_time()) == ux::channel_status::ok) got(x);
          break;
        }
      }
    }
  };
  std::vector<ux::join_handle<>> all;
  for (int i = 0; i < 3; ++i) all.push_back(ux::spawn([&, i] { unless_cancelled([&] { one(i); }); }));
  if (choose(2)) all[choose(3)].request_stop();
  for (auto& each : all) each.get();
  int v;
  while (s.a.try_receive(v) == ux::channel_status::ok) got(v);
  while (s.b.try_receive(v) == ux::channel_status::ok) got(v);
  expect(s.sent == s.received, "select: sent and received differ");
}

TEST(Library, Select) { explore_library(select); }

void select_crossing() {
  ux::channel<int> a, b;
  int moved = 0;
  const auto left = [&] {
    for (int i = 0; i < 3; ++i)
      ux::select(ux::on_send(a, i, [&] { ++moved; }), ux::on_receive(b, [&](auto&&) { ++moved; }));
  };
  const auto right = [&] {
    for (int i = 0; i < 3; ++i)
      ux::select(ux::on_send(b, i, [&] { ++moved; }), ux::on_receive(a, [&](auto&&) { ++moved; }));
  };
  ux::task_group all;
  all.spawn(left);
  all.spawn(right);
  all.wait();
  expect(moved == 6, "crossing: moves");
}

TEST(Library, SelectsThatCross) { explore_library(select_crossing); }

void selector() {
  ux::channel<int> a(choose(2)), b(choose(2));
  std::set<int> sent, received;
  const auto one = [&](int who) {
    ux::selector<int> s;
    int v = who * 8, w = who * 8 + 4;
    s.add_receive(a);
    s.add_receive(b);
    s.add_send(a, v);
    s.add_send(b, w);
    for (int k = 0; k < 3; ++k) {
      const int before_v = v, before_w = w;
      auto r = choose(3) == 0 ? s.try_wait() : s.wait_for(some_time());
      if (!r) continue;
      if (r->index < 2) expect(r->value && received.insert(*r->value).second, "selector: a value twice or none");
      if (r->index == 2) {
        expect(sent.insert(before_v).second, "sent twice");
        ++v;
      }
      if (r->index == 3) {
        expect(sent.insert(before_w).second, "sent twice");
        ++w;
      }
    }
  };
  std::vector<ux::join_handle<>> all;
  for (int i = 0; i < 3; ++i) all.push_back(ux::spawn([&, i] { unless_cancelled([&] { one(i); }); }));
  if (choose(2)) all[choose(3)].request_stop();
  for (auto& each : all) each.get();
  int v;
  while (a.try_receive(v) == ux::channel_status::ok) expect(received.insert(v).second, "twice");
  while (b.try_receive(v) == ux::channel_status::ok) expect(received.insert(v).second, "twice");
  expect(sent == received, "selector: sent and received differ");
}

TEST(Library, Selector) { explore_library(selector); }

void select_sources() {  // join, stop and time as cases
  ux::channel<int> ch;
  ux::task_group group;
  auto worker = group.spawn([&] {
    ux::this_fiber::sleep_for(some_time());
    return 7;
  });
  std::stop_source stop;
  auto stopper = ux::spawn([&] {
    ux::this_fiber::sleep_for(some_time());
    stop.request_stop();
  });
  auto sender = ux::spawn([&] {
    unless_cancelled([&] {
      int v = 3;
      (void)ch.send_for(v, some_time());
    });
  });
  std::array<int, 4> came{};
  unless_cancelled([&] {
    for (int i = 0; i < 3; ++i) {
      const auto index = ux::select(
          ux::when(came[0] == 0, ux::on_join(worker, [&] { expect(worker.done(), "on_join before the end"); })),
          ux::when(came[1] == 0,
                   ux::on_stop(stop.get_token(), [&] { expect(stop.stop_requested(), "on_stop before the stop"); })),
          ux::when(came[2] == 0, ux::on_receive(ch)), ux::after(some_time() + 1ms));
      ++came[index];
    }
  });
  stopper.get();
  sender.get();
  expect(worker.get() == 7, "result");
  group.wait();
}

TEST(Library, SelectOfJoinStopAndTime) { explore_library(select_sources); }

void close_wakes() {
  ux::channel<std::unique_ptr<int>> ch(choose(2));
  int sent = 0, refused = 0, received = 0, ended = 0;
  ux::task_group all;
  for (int i = 0; i < 2; ++i)
    all.spawn([&] {
      for (int k = 0; k < 2; ++k) {
        auto v = std::make_unique<int>(k);
        try {
          ch.send(std::move(v));
          ++sent;
        } catch (const ux::channel_closed&) {
          ++refused;
        }
      }
    });
  all.spawn([&] {
    for (int k = 0; k < 2; ++k) ch.receive() ? ++received : ++ended;
  });
  all.spawn([&] { ch.close(); });
  all.wait();
  while (ch.receive()) ++received;
  expect(sent == received && sent + refused == 4 && received + ended >= 2, "close: sums");
}

TEST(Library, CloseWakesAll) { explore_library(close_wakes); }

void tickers() {
  int ticks = 0;
  {
    ux::ticker every(1ms);
    auto other = ux::spawn([&] {
      if (choose(2)) {
        ux::this_fiber::sleep_for(some_time());
        every.stop();
      }
    });
    for (int i = 0; i < 3; ++i) {
      auto now = every.channel().receive();
      if (!now) break;
      ++ticks;
      if (choose(2)) ux::this_fiber::sleep_for(some_time());
    }
    other.get();
  }
  expect(ticks <= 3, "a tick for each receive");
}

TEST(Library, Ticker) { explore_library(tickers); }

}  // namespace
