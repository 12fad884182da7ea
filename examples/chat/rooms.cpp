#include "rooms.hpp"

#include "log.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace chat {
namespace {

text make_text(const json& event) { return std::make_shared<const std::string>(event.dump()); }

std::vector<std::string> without(const std::vector<std::string>& those, const std::vector<std::string>& these) {
  std::vector<std::string> rest;
  std::ranges::set_difference(those, these, std::back_inserter(rest));
  return rest;
}

json status_event(const std::string& notice, bool trouble) {
  return {{"type", "status"}, {"text", notice}, {"trouble", trouble}};
}

}  // namespace

bool rooms::join(member& who) {
  const access all(mutex_);
  entry& in = *rooms_.try_emplace(who.room).first;
  if (names(in.second).size() >= room_members_) return false;
  in.second.here.push_back(&who);
  const json welcome{{"type", "welcome"}, {"room", who.room}, {"name", who.name}, {"members", names(in.second)}};
  who.outgoing.send(make_text(welcome));
  if (!status_.empty()) who.outgoing.send(make_text(status_event(status_, true)));
  announce("joined", in, who.name, &who);
  publish({});
  return true;
}

void rooms::leave(member& who) noexcept {
  const access all(mutex_);
  who.outgoing.close();
  const auto found = rooms_.find(who.room);
  if (found == rooms_.end()) return;
  if (std::erase(found->second.here, &who) > 0) {
    announce("left", *found, who.name);
    publish({});
  }
  if (found->second.here.empty() && found->second.elsewhere.empty()) rooms_.erase(found);
}

void rooms::say(const member& who, const std::string& what) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const json event{{"type", "message"},
                   {"name", who.name},
                   {"text", what},
                   {"time", std::chrono::duration_cast<std::chrono::milliseconds>(now).count()}};
  const access all(mutex_);
  const auto found = rooms_.find(who.room);
  if (found == rooms_.end() || std::ranges::count(found->second.here, &who) == 0) return;
  deliver(*found, event);
  publish({who.room, event});
}

void rooms::tell(const std::string& room, const json& event) {
  const access all(mutex_);
  if (const auto found = rooms_.find(room); found != rooms_.end()) deliver(*found, event);
}

void rooms::set_elsewhere(const std::string& process, const roster& members) {
  const access all(mutex_);
  for (const auto& each : members) rooms_.try_emplace(each.first);
  for (auto at = rooms_.begin(); at != rooms_.end();) {
    room& in = at->second;
    const auto now = members.find(at->first);
    const std::vector<std::string> after = now == members.end() ? std::vector<std::string>() : now->second;
    const std::vector<std::string> before = std::exchange(in.elsewhere[process], after);
    if (after.empty()) in.elsewhere.erase(process);
    for (const std::string& name : without(after, before)) announce("joined", *at, name);
    for (const std::string& name : without(before, after)) announce("left", *at, name);
    at = in.here.empty() && in.elsewhere.empty() ? rooms_.erase(at) : std::next(at);
  }
}

void rooms::set_status(const std::string& notice, bool trouble) {
  const access all(mutex_);
  status_ = trouble ? notice : "";
  for (entry& each : rooms_) deliver(each, status_event(notice, trouble));
}

roster rooms::members_here() {
  const access all(mutex_);
  roster made;
  for (const auto& [name, room] : rooms_) {
    for (const member* each : room.here) made[name].push_back(each->name);
    if (!room.here.empty()) std::ranges::sort(made[name]);
  }
  return made;
}

bool rooms::empty() {
  const access all(mutex_);
  return rooms_.empty();
}

std::vector<std::string> rooms::names(const room& of) {
  std::vector<std::string> all;
  for (const member* each : of.here) all.push_back(each->name);
  for (const auto& each : of.elsewhere) all.insert(all.end(), each.second.begin(), each.second.end());
  std::ranges::sort(all);
  return all;
}

// Removes members that do not keep up.
void rooms::deliver(entry& to, const json& event, const member* except) {
  const text shared = make_text(event);
  std::vector<member*> slow;
  for (member* each : to.second.here) {
    text copy = shared;
    if (each == except || each->outgoing.try_send(copy) == ulexite::channel_status::ok) continue;
    each->too_slow.store(true, std::memory_order_relaxed);  // the close publishes it
    each->outgoing.close();
    slow.push_back(each);
  }
  for (member* each : slow) std::erase(to.second.here, each);
  for (const member* each : slow) {
    log(spdlog::level::warn, "too slow", {{"room", each->room}, {"name", each->name}});
    announce("left", to, each->name);
    publish({});
  }
}

void rooms::announce(const char* change, entry& in, const std::string& name, const member* except) {
  deliver(in, {{"type", change}, {"name", name}, {"members", names(in.second)}}, except);
}

void rooms::publish(news item) {
  if (outbox_) static_cast<void>(outbox_->try_send(item));  // dropped if the outbox is full
}

}  // namespace chat
