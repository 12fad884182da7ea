#include "relay.hpp"

#include "log.hpp"

#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

namespace chat {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view topic = "ulexite-chat";
constexpr auto heartbeat = 1s;
constexpr auto silence = 5s;  // after which a process has died, or the connection to redis
constexpr int deepest = 8;    // of the values in a message; our own have 3
constexpr auto first_retry = 100ms, last_retry = 5000ms;

std::string random_name() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

std::string_view text_of(const redisReply& reply) { return {reply.str, reply.len}; }

}  // namespace

relay::relay(const ulexite::net::endpoint& redis, rooms& rooms, ulexite::channel<news>& outbox)
    : redis_(redis), rooms_(rooms), outbox_(outbox), process_(random_name()), retry_in_(first_retry) {}

void relay::run() {
  do {
    try {
      return work();
    } catch (const ulexite::operation_cancelled&) {
      throw;
    } catch (const std::exception& failure) {  // the machine's, or redis's
      log(spdlog::level::warn, "redis lost",
          {{"redis", redis_.str()}, {"why", failure.what()}, {"retry_ms", retry_in_.count()}});
    }
    rooms_.set_status("no connection to the other servers", true);
    forget_silent(ulexite::steady_clock::time_point::max());
  } while (wait_before_retry());
}

// False if there is nothing left to retry. During this time, messages of the members went only to the members of this
// process.
bool relay::wait_before_retry() {
  const auto retry_at = ulexite::steady_clock::now() + std::exchange(retry_in_, std::min(retry_in_ * 2, last_retry));
  ulexite::channel_status status;
  news lost;
  do status = outbox_.receive_until(lost, retry_at);
  while (status == ulexite::channel_status::ok);
  return status != ulexite::channel_status::closed;
}

// Until the outbox is closed; throws when redis fails.
void relay::work() {
  redis::connection subscriber(redis_, silence), publisher(redis_, silence);
  subscriber.command("SUBSCRIBE", topic);
  log(spdlog::level::info, "redis connected", {{"redis", redis_.str()}});
  if (retry_in_ != first_retry) rooms_.set_status("connected to the other servers again", false);
  retry_in_ = first_retry;
  ulexite::scope([&](ulexite::task_group& both) {
    both.spawn([&] { listen(subscriber); });
    both.spawn([&] {
      publish(publisher);
      both.request_stop();
    });
  });
}

void relay::publish(redis::connection& to) {
  std::size_t commands = 0;
  const auto send = [&](const json& message) {
    to.send("PUBLISH", topic, message.dump());
    ++commands;
  };
  auto beat = ulexite::steady_clock::now();
  for (bool open = true; open;) {
    bool roster_due = false;
    const auto take = [&](const news& item) {
      if (item.room.empty())
        roster_due = true;
      else
        send({{"from", process_}, {"room", item.room}, {"event", item.event}});
    };
    ulexite::select(ulexite::in_order, ulexite::after(beat - ulexite::steady_clock::now(), [&] { roster_due = true; }),
                    ulexite::on_receive(outbox_, [&](std::optional<news> item) {
                      open = item.has_value();
                      take(item.value_or(news{}));
                    }));
    for (news more; outbox_.try_receive(more) == ulexite::channel_status::ok;) take(more);
    if (roster_due) {
      send({{"from", process_}, {"roster", rooms_.members_here()}});
      beat = ulexite::steady_clock::now() + heartbeat;
    }
    for (; commands > 0; --commands) redis::connection::checked(to.receive());
  }
}

void relay::listen(redis::connection& from) {
  for (;;) {
    const redis::reply reply = redis::connection::checked(from.receive());
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) throw redis::error("not a message of a subscription");
    try {
      hear(text_of(*reply->element[2]));
    } catch (const json::exception& failure) {
      log(spdlog::level::warn, "not understood", {{"message", text_of(*reply->element[2])}, {"why", failure.what()}});
    }
    forget_silent(ulexite::steady_clock::now() - silence);
  }
}

void relay::hear(std::string_view message) {
  // Values that lie deeper are left out, because dump() recurses, and a fiber's stack is small.
  const json parsed = json::parse(message, [](int depth, json::parse_event_t, json&) { return depth <= deepest; });
  const std::string from = parsed.at("from");
  if (from == process_) return;
  if (parsed.contains("event")) return rooms_.tell(parsed.at("room"), parsed.at("event"));
  roster members = parsed.at("roster");
  for (auto& each : members) std::ranges::sort(each.second);  // set_elsewhere relies on it
  rooms_.set_elsewhere(from, members);
  if (heard_.insert_or_assign(from, ulexite::steady_clock::now()).second)
    log(spdlog::level::info, "process found", {{"process", from}});
}

void relay::forget_silent(ulexite::steady_clock::time_point since) {
  std::erase_if(heard_, [&](const auto& each) {
    if (each.second >= since) return false;
    log(spdlog::level::info, "process gone", {{"process", each.first}});
    rooms_.set_elsewhere(each.first, {});
    return true;
  });
}

}  // namespace chat
