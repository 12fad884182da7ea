#pragma once

// What each fiber and each thread keeps of each fiber_local.

#include <cstdint>

namespace ulexite::detail {

// What one agent has of one fiber_local. The key is the number of that, which no other gets.
struct local_value {
  explicit local_value(std::uint64_t of) noexcept : key(of) {}
  virtual ~local_value() = default;

  const std::uint64_t key;
  local_value* next = nullptr;
};

// All of them: a list, for there are few. Used by the agent only.
class local_values {
 public:
  local_values() = default;
  local_values(const local_values&) = delete;
  local_values& operator=(const local_values&) = delete;
  ~local_values() { clear(); }

  [[nodiscard]] local_value* find(std::uint64_t key) const noexcept {
    local_value* value = first_;
    while (value && value->key != key) value = value->next;
    return value;
  }
  void add(local_value& value) noexcept {
    value.next = first_;
    first_ = &value;
  }
  // Destroys them, youngest first, with those that the destructors make.
  void clear() noexcept {
    while (local_value* const youngest = first_) {
      first_ = youngest->next;
      delete youngest;
    }
  }

 private:
  local_value* first_ = nullptr;
};

// The values of the calling fiber or thread. Throws std::bad_alloc, usage_error in a job.
local_values& this_agents_locals();

}  // namespace ulexite::detail
