#include "relay.hpp"

#if CHAT_NATS

#include "../engines/nats.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/synchronized.hpp>
#include <ulexite/sync/task_group.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

namespace chat {
namespace {

using examples::nats_connection;
using examples::nats_message;
using examples::nats_subscription;

class nats_relay final : public relay {
 public:
  nats_relay(const std::string& url, rooms& rooms, ulexite::channel<news>& outbox)
      : relay("nats", url, rooms, outbox), url_(url) {}

 private:
  void send(const std::vector<std::string>& messages) override {
    const auto to = bus_.copy();
    if (!to) throw std::runtime_error("nats: no connection");
    for (const std::string& each : messages) to->publish(topic, each);
  }
  void listen() override {
    for (bool told = false;; ulexite::this_fiber::sleep_for(std::chrono::milliseconds(500))) {
      const std::string why = listen_until_given_up(told);
      bus_.exchange(nullptr);
      if (!std::exchange(told, true)) on_lost(why);
      forget_silent();
    }
  }
  // Returns why there is no connection that cnats would make again. Clears `told` once there is one.
  std::string listen_until_given_up(bool& told) try {
    const auto bus = std::make_shared<nats_connection>(url_);
    nats_subscription heard(*bus, topic, 4096);
    bus_.exchange(bus);
    told = false;
    listen(*bus, heard);
    return "nats: cnats has given up";
  } catch (const ulexite::operation_cancelled&) {
    throw;
  } catch (const std::exception& failure) {
    return failure.what();
  }
  // Returns when cnats has given the connection up.
  void listen(nats_connection& bus, nats_subscription& heard) {
    ulexite::channel<bool> states;
    ulexite::scope([&](ulexite::task_group& group) {
      group.spawn([&, changes = bus.up().subscribe()]() mutable {
        states.send(changes.get());
        while (const auto up = changes.receive()) states.send(*up);
      });
      for (bool open = true; open; forget_silent())
        ulexite::select(ulexite::on_receive(heard.messages(),
                                            [&](std::optional<nats_message> message) {
                                              open = message.has_value();
                                              if (message) hear(text_of(*message));
                                            }),
                        ulexite::on_receive(states,
                                            [&](std::optional<bool> up) {
                                              *up ? on_connected() : on_lost("no answer, or the connection broke");
                                            }),
                        ulexite::after(silence));
      group.request_stop();
    });
  }

  const std::string url_;
  ulexite::synchronized<std::shared_ptr<nats_connection>> bus_;  // null while there is none
};

}  // namespace

std::unique_ptr<relay> relay_over_nats(const std::string& url, rooms& rooms, ulexite::channel<news>& outbox) {
  return std::make_unique<nats_relay>(url, rooms, outbox);
}

}  // namespace chat

#else

#include <stdexcept>

namespace chat {

std::unique_ptr<relay> relay_over_nats(const std::string&, rooms&, ulexite::channel<news>&) {
  throw std::runtime_error("--nats: this program was built without cnats (Debian: libnats-dev)");
}

}  // namespace chat

#endif
