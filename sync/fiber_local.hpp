#pragma once

#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/locals.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace ulexite {
namespace detail {

// The keys of all fiber_locals are one sequence, because the values of all types are in one list. So they are one even
// in a program and plugins that are compiled with hidden visibility.
[[gnu::visibility("default")]] inline std::uint64_t next_local_key() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed);  // counter
}

// The calling fiber's value for `key`. Null if it has none, and for a caller that is not a fiber. Makes no call.
[[gnu::always_inline]] inline local_value* find_local(std::uint64_t key) noexcept {
  const current_execution& here = inlined_execution();
  if (!here.agent || here.agent->kind != agent_kind::fiber) [[unlikely]]
    return nullptr;
  const rare_task_state* const rare = here.agent->fiber().rare_state_if_made();
  return rare ? rare->locals.find(key) : nullptr;
}

}  // namespace detail

// A variable with a separate value for each fiber and each plain thread. (A thread_local belongs to a worker, and a
// fiber may change its worker.) A fiber's value is made at its first use. It is destroyed at the fiber's end. Its
// destructor may wait, and sees no request to stop and no deadline. Values may outlive the fiber_local.
template <class T>
class fiber_local {
 public:
  // Each value starts as T().
  fiber_local() : fiber_local([] { return T(); }) {}
  // Each value starts as the result of make(), which the value's fiber calls.
  template <class F>
    requires std::is_invocable_r_v<T, F&>
  explicit fiber_local(F make) : make_(std::move(make)) {}
  fiber_local(const fiber_local&) = delete;
  fiber_local& operator=(const fiber_local&) = delete;

  // The caller's value. Waits only if `make` does. Throws exceptions of `make`, std::bad_alloc, and usage_error in a
  // job.
  T& get() {
    if (auto* const found = detail::find_local(key_)) [[likely]]
      return static_cast<value*>(found)->item;
    detail::local_values& mine = detail::this_agents_locals();
    if (auto* const found = mine.find(key_)) return static_cast<value*>(found)->item;
    auto made = std::make_unique<value>(key_, make_);
    mine.add(*made);
    return made.release()->item;
  }
  // Same as get().
  T& operator*() { return get(); }
  // Same as get().
  T* operator->() { return &get(); }

 private:
  struct value final : detail::local_value {
    value(std::uint64_t of, const std::function<T()>& make) : local_value(of), item(make()) {}
    T item;
  };

  const std::uint64_t key_ = detail::next_local_key();
  const std::function<T()> make_;
};

}  // namespace ulexite
