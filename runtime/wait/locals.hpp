#pragma once

// The values of fiber_locals of each fiber and thread.

#include <cstdint>

namespace ulexite::detail {

// One agent's value of one fiber_local. The key is the unique number of the fiber_local.
struct local_value {
  explicit local_value(std::uint64_t of) noexcept : key(of) {}
  virtual ~local_value() = default;

  const std::uint64_t key;
  local_value* next = nullptr;
};

// All values of one agent. They are a list, because there are few, with direct places for the first fiber_locals of the
// process. Used by the agent only.
class local_values {
 public:
  local_values() = default;
  local_values(const local_values&) = delete;
  local_values& operator=(const local_values&) = delete;
  ~local_values() { clear(); }

  [[nodiscard]] local_value* find(std::uint64_t key) const noexcept {
    if (key < at_once) return places_[key];
    local_value* value = first_;
    while (value && value->key != key) value = value->next;
    return value;
  }
  void add(local_value& value) noexcept {
    value.next = first_;
    first_ = &value;
    if (value.key < at_once) places_[value.key] = &value;
  }
  // Destroys all values, youngest first, also values that the destructors make.
  void clear() noexcept {
    while (local_value* const youngest = first_) {
      first_ = youngest->next;
      if (youngest->key < at_once) places_[youngest->key] = nullptr;
      delete youngest;
    }
  }

 private:
  static constexpr std::uint64_t at_once = 8;  // keys that are found without a search

  local_value* first_ = nullptr;       // all values, the youngest first
  local_value* places_[at_once] = {};  // some of them, by key
};

// The values of the calling fiber or thread. Throws std::bad_alloc, usage_error in a job.
local_values& this_agents_locals();

}  // namespace ulexite::detail
