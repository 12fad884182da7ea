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
    int last = 0;
    while (at_end.try_receive(last) == channel_status::ok) {
    }
  }
};

void give(channels& on) {
  int value = 1;
  (void)on.empty.try_send(value);
  (void)on.to.try_send(value);
}
void take(channels& on) {
  int value = 0;
  (void)on.full.try_receive(value);
}

const section rows{"Channels and select",
                   {
                       row_on<channels>(
                           "send", [](channels& on) { on.used.send(1); }, [](channels& on) { on.full.send(1); }, take),
                       row_on<channels>(
                           "receiver", [](channels& on) { (void)on.used.receive(); },
                           [](channels& on) { (void)on.empty.receive(); }, give),
                       row_on<channels>(
                           "receiver",
                           [](channels& on) {
                             on.to.send(1);
                             (void)on.from.receive();
                           },
                           [](channels& on) { (void)on.from.receive(); }, give),
                       row_on<channels>("try_send",
                                        [](channels& on) {
                                          int value = 1;
                                          (void)on.full.try_send(value);
                                        }),
                       row_on<channels>("try_receive",
                                        [](channels& on) {
                                          int value = 0;
                                          (void)on.empty.try_receive(value);
                                        }),
                       row_on<channels>("is_closed", [](channels& on) { on.used.close(); }),
                       row_on<channels>("is_closed", [](channels& on) { (void)on.used.is_closed(); }),
                       row_on<channels>("size", [](channels& on) { (void)on.used.size(); }),
                       row_on<channels>(
                           "selector::wait", [](channels& on) { select(on_receive(on.used), on_receive(on.empty)); },
                           [](channels& on) { select(on_receive(on.empty), on_send(on.full, 2)); }, give),
                       row_on<channels>("otherwise", [](channels& on) { select(on_receive(on.empty), otherwise()); }),
                       row_on<channels>(
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
                       row_on<channels>("selector::try_wait",
                                        [](channels& on) {
                                          selector<int> any;
                                          any.add_receive(on.empty);
                                          (void)any.try_wait();
                                        }),
                       row_on<channels>(
                           "broadcast_receiver",
                           [](channels& on) {
                             on.all.send(1);
                             (void)on.from_all.receive();
                           },
                           [](channels& on) { (void)on.at_end.receive(); }, [](channels& on) { on.all.send(1); }),
                       row_on<channels>(
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
                       row_on<channels>("broadcast::send", [](channels& on) { on.all.send(1); }),
                       row_on<channels>("watch::set", [](channels& on) { on.value.set(1); }),
                       row_on<channels>("get", [](channels& on) { (void)on.value.get(); }),
                       row_on<channels>("subscribe", [](channels& on) { (void)on.value.subscribe(); }),
                       {"ticker::stop",
                        [] {
                          const auto on = std::make_shared<ticker>(1h);
                          return plain([=] { on->stop(); });
                        }},
                   }};

}  // namespace
