#pragma once

// Keys and values in memory, spread over shards with a lock each.
//
// To read, make a reader of the shards that have the keys; to write, make a writer. The shards are locked as long as it
// exists, always in one order. So commands on many keys are atomic, and never deadlock. Only taking the locks waits.

#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/shared_mutex.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kv_server {

using instant = std::chrono::time_point<ulexite::steady_clock, std::chrono::milliseconds>;
inline constexpr instant never = instant::max();

struct entry {
  std::string value;
  instant expiry = never;
};

class store {
 public:
  using shard_set = std::uint64_t;  // a bit each
  static constexpr shard_set all_shards = ~shard_set{0};

  class view;
  class reader;
  class writer;

  // The shard of a key.
  [[nodiscard]] static shard_set shard_of(std::string_view key) noexcept { return shard_set{1} << index_of(key); }

  // Removes expired keys, shard by shard. Reads do not find an expired key before that either.
  void sweep();

 private:
  struct hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct shard {
    ulexite::shared_mutex mutex;  // guards the rest
    std::unordered_map<std::string, entry, hash, std::equal_to<>> entries;
    std::set<std::pair<instant, const std::string*>> expiring;  // by their keys in `entries`, which stay in place
  };

  // The table of a shard takes the hash modulo a prime, so the upper bits are free for this.
  [[nodiscard]] static std::size_t index_of(std::string_view key) noexcept { return hash{}(key) >> 58; }

  std::array<shard, 64> shards_;
};

// The readable part. It sees one moment: no key expires while it exists.
class store::view {
 public:
  view(const view&) = delete;
  view& operator=(const view&) = delete;

  [[nodiscard]] instant now() const noexcept { return now_; }
  // nullptr: there is none.
  [[nodiscard]] const entry* find(std::string_view key) const;
  // The number of keys, and of keys with an expiry. Expired keys count until they are removed.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t expiring() const noexcept;
  // Calls visit(key) for each that has not expired.
  template <class F>
  void for_each_key(F&& visit) const {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (held_ >> i & 1)
        for (const auto& [key, found] : shards_[i].entries)
          if (now_ < found.expiry) visit(std::string_view(key));
  }

 protected:
  view(store& home, shard_set held) noexcept : shards_(home.shards_), held_(held) {}
  ~view() = default;
  void set_clock() { now_ = std::chrono::floor<std::chrono::milliseconds>(ulexite::steady_clock::now()); }

  std::array<shard, 64>& shards_;
  const shard_set held_;
  instant now_;  // of a moment at which all locks were held
};

class store::reader : public view {
 public:
  reader(store& home, shard_set of);
  ~reader();
};

class store::writer : public view {
 public:
  writer(store& home, shard_set of);
  ~writer();

  // Sets a key; replaces its value and expiry.
  void set(std::string_view key, std::string_view value, instant expiry = never);
  // Sets the value of an existing key.
  void set_value(std::string_view key, std::string_view value);
  void set_expiry(std::string_view key, instant expiry);
  // Removes a key. False if there was none.
  bool erase(std::string_view key);
  void clear();
  // Removes some expired keys. True if there are more.
  bool erase_expired();
};

}  // namespace kv_server
