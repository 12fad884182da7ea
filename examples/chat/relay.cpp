#include "relay.hpp"

#include "log.hpp"

#include <ulexite/sync/cancellation.hpp>
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

constexpr auto heartbeat = 1s;
constexpr int deepest = 8;  // of the values in a message; our own have 3

std::string random_name() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

}  // namespace

relay::relay(std::string engine, std::string where, rooms& rooms, ulexite::channel<news>& outbox)
    : engine_(std::move(engine)), where_(std::move(where)), rooms_(rooms), outbox_(outbox), process_(random_name()) {}

void relay::run() {
  ulexite::scope([&](ulexite::task_group& both) {
    both.spawn([&] { listen(); });
    both.spawn([&] {
      publish();
      both.request_stop();
    });
  });
}

void relay::publish() {
  auto beat = ulexite::steady_clock::now();
  for (bool open = true; open;) {
    std::vector<std::string> messages;
    bool roster_due = false;
    const auto take = [&](const news& item) {
      if (item.room.empty())
        roster_due = true;
      else
        messages.push_back(json{{"from", process_}, {"room", item.room}, {"event", item.event}}.dump());
    };
    ulexite::select(ulexite::in_order, ulexite::after(beat - ulexite::steady_clock::now(), [&] { roster_due = true; }),
                    ulexite::on_receive(outbox_, [&](std::optional<news> item) {
                      open = item.has_value();
                      take(item.value_or(news{}));
                    }));
    for (news more; outbox_.try_receive(more) == ulexite::channel_status::ok;) take(more);
    if (roster_due) {
      messages.push_back(json{{"from", process_}, {"roster", rooms_.members_here()}}.dump());
      beat = ulexite::steady_clock::now() + heartbeat;
    }
    if (messages.empty() || !connected_.load(std::memory_order_relaxed)) continue;  // a hint
    try {
      send(messages);
    } catch (const ulexite::operation_cancelled&) {
      throw;
    } catch (const std::exception& failure) {  // the machine's, or the engine's
      log(spdlog::level::warn, "not published",
          {{engine_, where_}, {"why", failure.what()}, {"messages", messages.size()}});
    }
  }
}

void relay::on_lost(std::string_view why) {
  connected_.store(false, std::memory_order_relaxed);  // a hint
  lost_ = true;
  log(spdlog::level::warn, engine_ + " lost", {{engine_, where_}, {"why", why}});
  rooms_.set_status("no connection to the other servers", true);
  forget_silent(ulexite::steady_clock::time_point::max());
}

void relay::on_connected() {
  for (news lost; outbox_.try_receive(lost) == ulexite::channel_status::ok;) continue;  // of the time without it
  connected_.store(true, std::memory_order_relaxed);                                    // a hint
  log(spdlog::level::info, engine_ + " connected", {{engine_, where_}});
  if (std::exchange(lost_, false)) rooms_.set_status("connected to the other servers again", false);
  news changed;  // the roster is due at once
  static_cast<void>(outbox_.try_send(changed));
}

void relay::hear(std::string_view message) try {
  // Values that lie deeper are left out, because dump() recurses, and a fiber's
  // stack is small.
  const json parsed = json::parse(message, [](int depth, json::parse_event_t, json&) { return depth <= deepest; });
  const std::string from = parsed.at("from");
  if (from == process_) return;
  if (parsed.contains("event")) return rooms_.tell(parsed.at("room"), parsed.at("event"));
  roster members = parsed.at("roster");
  for (auto& each : members) std::ranges::sort(each.second);  // set_elsewhere relies on it
  rooms_.set_elsewhere(from, members);
  if (heard_.insert_or_assign(from, ulexite::steady_clock::now()).second)
    log(spdlog::level::info, "process found", {{"process", from}});
} catch (const std::exception& failure) {
  log(spdlog::level::warn, "not understood", {{"message", message}, {"why", failure.what()}});
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
