#pragma once

// The first half of the means to run the library's own text under Relacy: std::atomic, and the code that needs the real
// one. A model includes this header, names the orders, includes "relacy_agents.hpp", and then the files that it checks:
//
//   #include "relacy_library.hpp"
//   enum class mutation { none, a_not_released };
//   constexpr auto mutant = mutation::ULEXITE_MUTANT;
//   using class_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>>;
//   using detail_orders = model::orders;
//   #include "relacy_agents.hpp"
//   #include <ulexite/sync/event.cpp>
//
// In a class of namespace ulexite, std::atomic is then one of Relacy's with class_orders; in one of ulexite::detail,
// with detail_orders. A mutant that changes a step has a line for each change of the text, see edit_text.py:
//
//   // MUTANT: silent_set  set wakes no waiter
//   //   sync/event.cpp: queue_.claim_all(woken); =>

#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/base/fences.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "relacy_atomics.hpp"

// Relacy's macros, which the library's text must not see.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#define errno (*__errno_location())

// Relacy has an operator delete of its own, but not this form of it.
inline void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace model {

// Made only while a schedule runs, although its class may have a constexpr constructor.
template <class T>
class made_late {
 public:
  template <class... Values>
  constexpr explicit made_late(const Values&... values) noexcept : nothing_{} {
    if (!std::is_constant_evaluated()) std::construct_at(&value_, values...);
  }
  made_late(const made_late&) = delete;
  made_late& operator=(const made_late&) = delete;
  ~made_late() { std::destroy_at(&value_); }

  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  union {
    char nothing_;
    T value_;
  };
};

// std::atomic, as far as the library uses it.
template <class T, class Orders>
class library_atomic {
 public:
  constexpr library_atomic() noexcept : library_atomic(T{}) {}
  constexpr library_atomic(T value) noexcept : cell_(value) {}

  T load(std::memory_order order) const { return cell_->load(of(order)); }
  void store(T value, std::memory_order order) { cell_->store(value, of(order)); }
  T exchange(T value, std::memory_order order) { return cell_->exchange(value, of(order)); }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    return cell_->compare_exchange_strong(expected, desired, of(success), of(failure));
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    return cell_->compare_exchange_weak(expected, desired, of(success), of(failure));
  }
  T fetch_add(T value, std::memory_order order) { return cell_->fetch_add(value, of(order)); }
  T fetch_sub(T value, std::memory_order order) { return cell_->fetch_sub(value, of(order)); }
  T fetch_or(T value, std::memory_order order) { return cell_->fetch_or(value, of(order)); }
  T fetch_and(T value, std::memory_order order) { return cell_->fetch_and(value, of(order)); }

 private:
  static constexpr rl::memory_order of(std::memory_order order) {
    switch (order) {
      case std::memory_order_relaxed: return Orders::relaxed;
      case std::memory_order_release: return Orders::release;
      case std::memory_order_acq_rel: return Orders::acq_rel;
      case std::memory_order_seq_cst: return Orders::seq_cst;
      default: return Orders::acquire;
    }
  }

  made_late<relacy_atomic<T, Orders, false>> cell_;
};

// A plain variable of the library. Relacy reports accesses to it that nothing orders. See edit_text.py.
template <class T>
class checked {
  using cell = std::conditional_t<std::is_enum_v<T>, int, T>;  // what Relacy can print

 public:
  constexpr checked(T value = {}) noexcept : var_(static_cast<cell>(value)) {}
  checked(const checked& other) : checked(T(other)) {}
  checked& operator=(const checked& other) { return *this = T(other); }
  checked& operator=(T value) {
    var_->operator()($) = static_cast<cell>(value);
    return *this;
  }
  checked& operator+=(T value) { return *this = *this + value; }
  checked& operator-=(T value) { return *this = *this - value; }
  checked& operator++() { return *this += 1; }
  checked& operator--() { return *this -= 1; }
  operator T() const { return static_cast<T>(cell(var_->operator()($))); }
  T operator->() const { return *this; }

 private:
  made_late<rl::var<cell>> var_;
};

}  // namespace model
