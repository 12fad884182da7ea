// Hangs at channels, futures and events.

#include "hang.hpp"

namespace ulexite::hangs {
namespace {

void forgotten_close(runtime& rt) {
  rt.run([] {
    channel<int> values(4);
    auto reader = spawn({.name = "reader"}, [&] {
      while (values.receive()) {
      }
    });
    values.send(1);
    reader.join();
  });
}

void nobody_receives(runtime& rt) {
  rt.run([] {
    channel<int> values;
    spawn({.name = "sender"}, [&] { values.send(1); }).join();
  });
}

void circle_of_full_channels(runtime& rt) {
  rt.run([] {
    channel<int> there, back;
    auto first = spawn({.name = "first"}, [&] { there.send(1), back.receive(); });
    auto second = spawn({.name = "second"}, [&] { back.send(1), there.receive(); });
    first.join();
    second.join();
  });
}

void select_without_partners(runtime& rt) {
  rt.run([] {
    channel<int> a, b;
    spawn({.name = "chooser"}, [&] { select(on_receive(a, [](auto&&) {}), on_receive(b, [](auto&&) {})); }).join();
  });
}

void pipeline_without_an_end(runtime& rt) {
  rt.run([] {
    channel<int> first(2), second(2);
    spawn({.name = "stage"}, [&] {
      while (const auto value = first.receive()) second.send(*value);
    }).detach();  // does not close `second`
    auto sink = spawn({.name = "sink"}, [&] {
      while (second.receive()) {
      }
    });
    first.send(1);
    first.close();
    sink.join();
  });
}

void promise_kept_by_its_waiter(runtime& rt) {
  rt.run([] {
    promise<int> answer;
    answer.get_future().get();
  });
}

void event_never_set(runtime& rt) {
  rt.run([] {
    event ready;
    spawn({.name = "waiter"}, [&] { ready.wait(); }).join();
  });
}

void many_at_one_event(runtime& rt) {
  rt.run([] {
    event ready;
    task_group all;
    for (int i = 0; i < 1000; ++i) all.spawn(fiber_options{.name = "one of many"}, [&] { ready.wait(); });
    all.wait();
  });
}

// It has subscribed after the only value, and the broadcast is not closed.
void late_subscriber(runtime& rt) {
  rt.run([] {
    broadcast<int> news(4);
    news.send(1);
    auto reader = news.subscribe();
    spawn({.name = "late"}, [&] { (void)reader.receive(); }).join();
  });
}

}  // namespace

std::initializer_list<hang> hangs_of_messages() {
  static const std::initializer_list<hang> all = {
      {"forgotten_close", forgotten_close, {"\"reader\": waits", "to receive from channel 0x", "messages.cpp:"}},
      {"nobody_receives", nobody_receives, {"\"sender\": waits", "to send to channel 0x"}},
      {"circle_of_full_channels",
       circle_of_full_channels,
       {"\"main\": waits", "\"first\": waits", "to send to channel", "\"second\": waits", "to send to channel"}},
      {"select_without_partners",
       select_without_partners,
       {"\"chooser\": waits", "in a select, one of whose cases is at 0x"}},
      {"pipeline_without_an_end", pipeline_without_an_end, {"\"sink\": waits", "to receive from channel"}},
      {"promise_kept_by_its_waiter", promise_kept_by_its_waiter, {"\"main\": waits", "for future 0x"}},
      {"event_never_set", event_never_set, {"\"waiter\": waits", "for event 0x"}},
      {"many_at_one_event", many_at_one_event, {"\"one of many\" and 999 more alike", "for event 0x"}},
      {"late_subscriber", late_subscriber, {"\"late\": waits", "to receive from broadcast 0x"}},
  };
  return all;
}

}  // namespace ulexite::hangs
