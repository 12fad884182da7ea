#include "contract/contract.hpp"

#include <tuple>

namespace {

using namespace ulexite;
using namespace ulexite::test;

// Channels that are full and empty for good, and one with room and values.
struct channels {
  channel<int> empty{1}, full{1}, used{1000};
  sender<int> to;
  receiver<int> from;
  broadcast<int> all{1000};
  broadcast_receiver<int> from_all = all.subscribe(), at_end = all.subscribe();
  watch<int> value{1};
  watch_receiver<int> of_value = value.subscribe();

  channels() {
    std::tie(to, from) = make_channel<int>(1);
    full.send(1);
    for (int i = 0; i < 500; ++i) used.send(i);
    while (at_end.try_receive(last_) == channel_status::ok) {
    }
  }

 private:
  int last_ = 0;
};

using function = void (*)(channels&);

calls with(function ready, function waiting = nullptr, function release = nullptr) {
  const auto on = std::make_shared<channels>();
  calls made{.ready = [=] { ready(*on); }};
  if (waiting) made.waiting = [=] { waiting(*on); };
  if (release) made.release = [=] { release(*on); };
  return made;
}

void give(channels& on) {
  int value = 1;
  (void)on.empty.try_send(value);
  (void)on.to.try_send(value);
}
void take(channels& on) {
  int value = 0;
  (void)on.full.try_receive(value);
}

auto row(const char* name, function ready, function waiting = nullptr, function release = nullptr) {
  return std::pair<const char*, std::function<calls()>>(name, [=] { return with(ready, waiting, release); });
}

const section rows{"Channels and select",
                   {
                       row(
                           "send", [](channels& on) { on.used.send(1); }, [](channels& on) { on.full.send(1); }, take),
                       row(
                           "receiver", [](channels& on) { (void)on.used.receive(); },
                           [](channels& on) { (void)on.empty.receive(); }, give),
                       row(
                           "receiver",
                           [](channels& on) {
                             on.to.send(1);
                             (void)on.from.receive();
                           },
                           [](channels& on) { (void)on.from.receive(); }, give),
                       row("try_send",
                           [](channels& on) {
                             int value = 1;
                             (void)on.full.try_send(value);
                           }),
                       row("try_receive",
                           [](channels& on) {
                             int value = 0;
                             (void)on.empty.try_receive(value);
                           }),
                       row("is_closed", [](channels& on) { on.used.close(); }),
                       row("is_closed", [](channels& on) { (void)on.used.is_closed(); }),
                       row("size", [](channels& on) { (void)on.used.size(); }),
                       row(
                           "selector::wait", [](channels& on) { select(on_receive(on.used), on_receive(on.empty)); },
                           [](channels& on) { select(on_receive(on.empty), on_send(on.full, 2)); }, give),
                       row("otherwise", [](channels& on) { select(on_receive(on.empty), otherwise()); }),
                       row(
                           "selector::wait",
                           [](channels& on) {
                             selector<int> any;
                             any.add_receive(on.used);
                             (void)any.wait();
                           },
                           [](channels& on) {
                             selector<int> any;
                             any.add_receive(on.empty);
                             (void)any.wait();
                           },
                           give),
                       row("selector::try_wait",
                           [](channels& on) {
                             selector<int> any;
                             any.add_receive(on.empty);
                             (void)any.try_wait();
                           }),
                       row(
                           "broadcast_receiver",
                           [](channels& on) {
                             on.all.send(1);
                             (void)on.from_all.receive();
                           },
                           [](channels& on) { (void)on.at_end.receive(); }, [](channels& on) { on.all.send(1); }),
                       row(
                           "watch_receiver",
                           [](channels& on) {
                             on.value.set(3);
                             (void)on.of_value.receive();
                           },
                           [](channels& on) {
                             (void)on.of_value.get();
                             (void)on.of_value.receive();
                           },
                           [](channels& on) { on.value.set(2); }),
                       row("broadcast::send", [](channels& on) { on.all.send(1); }),
                       row("watch::set", [](channels& on) { on.value.set(1); }),
                       row("get", [](channels& on) { (void)on.value.get(); }),
                       row("subscribe", [](channels& on) { (void)on.value.subscribe(); }),
                       {"ticker::stop",
                        [] {
                          const auto on = std::make_shared<ticker>(1h);
                          return calls{.ready = [=] { on->stop(); }};
                        }},
                   }};

}  // namespace
