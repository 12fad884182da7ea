#include "directory.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <chrono>
#include <functional>

namespace presence {
namespace {

void push_to_all(const auto& watchers, const std::string& line) {
  for (const auto& each : watchers) each->push(line);
}

}  // namespace

directory::shard& directory::shard_of(const std::string& name) {
  return shards_[std::hash<std::string>()(name) % shards_.size()];
}

// Calls how(person). A name that nobody has or watches is forgotten.
template <class F>
void directory::change(const std::string& name, F&& how) {
  shard_of(name).with_lock([&](auto& people) {
    const auto found = people.try_emplace(name).first;
    how(found->second);
    if (found->second.connections == 0 && found->second.watchers.empty()) people.erase(found);
  });
}

void directory::join(const std::string& name) {
  change(name, [&](person& who) {
    if (++who.connections > 1) return;
    note("ONLINE " + name + "\n");
    push_to_all(who.watchers, "ONLINE " + name + "\n");
  });
}

void directory::leave(const std::string& name) {
  change(name, [&](person& who) {
    if (--who.connections > 0) return;
    note("OFFLINE " + name + "\n");
    push_to_all(who.watchers, "OFFLINE " + name + "\n");
  });
}

void directory::watch(const std::string& name, const std::shared_ptr<client>& by) {
  change(name, [&](person& who) {
    who.watchers.insert(by);
    by->reply((who.connections > 0 ? "ONLINE " : "OFFLINE ") + name + "\n");
  });
}

void directory::unwatch(const std::string& name, const std::shared_ptr<client>& by) {
  change(name, [&](person& who) { who.watchers.erase(by); });
}

void directory::say(const std::string& name, std::string_view text) {
  std::string line = "SAID " + name + " ";
  line.append(text).append("\n");
  change(name, [&](person& who) { push_to_all(who.watchers, line); });
}

void directory::note(const std::string& change) {
  if (!history_) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string line = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count()) + " " + change;
  const ulexite::shield also_of_those_who_were_stopped;
  static_cast<void>(history_->try_send(line));
}

std::size_t directory::size() const {
  std::size_t total = 0;
  for (const shard& each : shards_) total += each.with_lock([](const auto& people) { return people.size(); });
  return total;
}

}  // namespace presence
