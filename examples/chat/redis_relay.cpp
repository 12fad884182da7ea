#include "relay.hpp"

#include <ulexite/interop/redis.hpp>
#include <ulexite/sync/cancellation.hpp>

namespace chat {
namespace {

namespace redis = ulexite::redis;

class redis_relay final : public relay {
 public:
  redis_relay(const ulexite::net::address& at, rooms& rooms, ulexite::channel<news>& outbox)
      : relay("redis", at.str(), rooms, outbox),
        publisher_(at, {.size = 1, .acquire_time = silence, .connection = {.patience = silence}}),
        subscriber_(at, {.patience = silence / 2}) {
    subscriber_.subscribe(topic);
  }

 private:
  void send(const std::vector<std::string>& messages) override {
    redis::pool::lease to = publisher_.acquire();
    for (const std::string& each : messages) to->send("PUBLISH", topic, each);
    while (to->unread() != 0) to->receive().check();
    to.hand_back();
  }
  void listen() override {
    for (;;) {
      const auto heard = ulexite::try_for(silence, [&] { return subscriber_.next(); });
      if (heard) note(*heard);
      forget_silent();
    }
  }
  void note(const redis::notice& heard) {
    switch (heard.what) {
      case redis::notice::kind::message: return hear(heard.text);
      case redis::notice::kind::lost: return on_lost(heard.text);
      case redis::notice::kind::connected: return on_connected();
    }
  }

  redis::pool publisher_;
  redis::subscriber subscriber_;
};

}  // namespace

std::unique_ptr<relay> relay_over_redis(const std::string& where, rooms& rooms, ulexite::channel<news>& outbox) {
  return std::make_unique<redis_relay>(ulexite::net::address::parse(where), rooms, outbox);
}

}  // namespace chat
