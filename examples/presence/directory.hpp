#pragma once

#include "client.hpp"

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/synchronized.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace presence {

// Who is online, and who watches whom. Ordinary code with ordinary locks, which coroutines and fibers call. A lock is
// held while watchers are notified, so each of them hears the changes of a name in their order. Any fiber.
class directory {
 public:
  // Each change also goes to `history`, unless it is null. If that is full, the change is missing there.
  explicit directory(ulexite::channel<std::string>* history = nullptr) : history_(history) {}

  // Counts another connection of that name, or one less. The name is online as long as there is one.
  void join(const std::string& name);
  void leave(const std::string& name);

  // From now on the client gets a line for the present state of the name, and for each change.
  void watch(const std::string& name, const std::shared_ptr<client>& by);
  void unwatch(const std::string& name, const std::shared_ptr<client>& by);

  // Sends a text to those who watch `name`.
  void say(const std::string& name, std::string_view text);

  // Names that are online or watched.
  [[nodiscard]] std::size_t size() const;

 private:
  struct person {
    std::size_t connections = 0;
    std::set<std::shared_ptr<client>> watchers;
  };
  using shard = ulexite::synchronized<std::unordered_map<std::string, person>>;

  [[nodiscard]] shard& shard_of(const std::string& name);
  template <class F>
  void change(const std::string& name, F&& how);
  void note(const std::string& change);

  std::array<shard, 64> shards_;
  ulexite::channel<std::string>* const history_;
};

}  // namespace presence
