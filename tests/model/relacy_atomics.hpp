#pragma once

// The parts with which a protocol class runs under Relacy, the race detector. They are an atomics policy with the names
// of std_atomics, and mutex and condition_variable for the parker. Relacy runs the threads of a test as coroutines, and
// chooses the interleaving. For each load it chooses one of the values that the memory model allows. It reports data
// races on rl::var, deadlocks and failed RL_ASSERTs.
//
// Include it after everything else: Relacy redefines new, delete, malloc, assert and more as macros.
//
// A mutant that weakens an order is a policy, relacy_atomics<ORDERS>, so that the shipped text is checked.
//
// Relacy cannot see two things. The first is a load that returns a value stored later in the interleaving. So if an
// argument needs that a load is not delayed beyond a later store, it needs another proof. The second is C++20's rule
// for release sequences: a later plain store by the same thread does not continue them.

#include <cstdint>
#include <mutex>
#include <ostream>
#include <type_traits>

#include <relacy/relacy.hpp>

// The mutant of this build: a name from the model's lines `// MUTANT: name`, which is an enumerator of the model.
#ifndef ULEXITE_MUTANT
#define ULEXITE_MUTANT none
#endif

namespace model {

// ---- orders, and their weakening by a mutant ----

struct orders {
  static constexpr auto relaxed = rl::mo_relaxed;
  static constexpr auto acquire = rl::mo_acquire;
  static constexpr auto release = rl::mo_release;
  static constexpr auto acq_rel = rl::mo_acq_rel;
  static constexpr auto seq_cst = rl::mo_seq_cst;
  static constexpr bool exchanges_are_atomic = true;
  static constexpr bool additions_are_exchanges = true;
  static constexpr bool fences = true;
  static constexpr bool light_fences = true;
  static constexpr bool heavy_fences = true;
};
// Nothing is published, except by seq_cst.
struct release_is_relaxed : orders {
  static constexpr auto release = rl::mo_relaxed;
  static constexpr auto acq_rel = rl::mo_acquire;
};
// Nothing published is seen, except by seq_cst.
struct acquire_is_relaxed : orders {
  static constexpr auto acquire = rl::mo_relaxed;
  static constexpr auto acq_rel = rl::mo_release;
};
// No single order of all.
struct seq_cst_is_acq_rel : orders {
  static constexpr auto seq_cst = rl::mo_acq_rel;
};
// Two threads may both succeed.
struct exchange_is_load_and_store : orders {
  static constexpr bool exchanges_are_atomic = false;
};
// fetch_add of nothing is only a load.
struct addition_is_load : orders {
  static constexpr bool additions_are_exchanges = false;
};
// load_after_fence is only a load.
struct no_fence : orders {
  static constexpr bool fences = false;
};
// One end of the store-then-load race is without its fence.
struct no_light_fence : orders {
  static constexpr bool light_fences = false;
};
struct no_heavy_fence : orders {
  static constexpr bool heavy_fences = false;
};

// The orders that belong to a mutant: orders_of<mutant, by<mutation::a_not_released, release_is_relaxed>, ...>.
template <auto Mutation, class Orders>
struct by {};
template <auto Mutant, class... By>
struct find_orders : std::type_identity<orders> {};
template <auto Mutant, auto Mutation, class Orders, class... Others>
struct find_orders<Mutant, by<Mutation, Orders>, Others...>
    : std::conditional_t<Mutant == Mutation, std::type_identity<Orders>, find_orders<Mutant, Others...>> {};
template <auto Mutant, class... By>
using orders_of = typename find_orders<Mutant, By...>::type;

// The part of an order that makes sense for a load, a store, a failed exchange.
constexpr rl::memory_order for_load(rl::memory_order order) {
  return order == rl::mo_acq_rel ? rl::mo_acquire : order == rl::mo_release ? rl::mo_relaxed : order;
}
constexpr rl::memory_order for_store(rl::memory_order order) {
  return order == rl::mo_acq_rel ? rl::mo_release : order == rl::mo_acquire ? rl::mo_relaxed : order;
}
constexpr rl::memory_order for_failure(rl::memory_order success, rl::memory_order failure) {
  const auto most = for_load(success);
  return most == rl::mo_relaxed || for_load(failure) == rl::mo_relaxed ? rl::mo_relaxed
         : most == rl::mo_acquire                                      ? rl::mo_acquire
                                                                       : for_load(failure);
}

// ---- atomics ----

// std::atomic over rl::atomic. rl::atomic takes the source position as an argument. With FenceFirst a seq_cst operation
// is a full fence and the operation. The reason: Relacy has one order of seq_cst fences and another of seq_cst
// operations. C++20 has one order of both, and the parking protocol needs that. The fence is only before the operation.
// Later operations may still overtake a seq_cst operation, as in C++20.
template <class T, class Orders, bool FenceFirst>
class relacy_atomic {
  // Relacy prints every value: it must not be a character, and its type must be printable.
  static constexpr bool as_int = std::is_enum_v<T> || (std::is_integral_v<T> && sizeof(T) == 1);
  using cell = std::conditional_t<as_int, int, T>;

 public:
  relacy_atomic() : relacy_atomic(T{}) {}
  relacy_atomic(T value) { cell_.store(static_cast<cell>(value), rl::mo_relaxed, $); }

  T load(rl::memory_order order) const {
    begin(order);
    return static_cast<T>(cell_.load(for_load(order), $));
  }
  void store(T value, rl::memory_order order) {
    begin(order);
    cell_.store(static_cast<cell>(value), for_store(order), $);
  }
  T exchange(T value, rl::memory_order order) {
    begin(order);
    if constexpr (!Orders::exchanges_are_atomic) {
      const T before = load(rl::mo_acquire);
      store(value, rl::mo_release);
      return before;
    }
    return static_cast<T>(cell_.exchange(static_cast<cell>(value), order, $));
  }
  bool compare_exchange_strong(T& expected, T desired, rl::memory_order success, rl::memory_order failure) {
    return compare_exchange<false>(expected, desired, success, failure);
  }
  bool compare_exchange_weak(T& expected, T desired, rl::memory_order success, rl::memory_order failure) {
    return compare_exchange<true>(expected, desired, success, failure);
  }
  T fetch_add(T value, rl::memory_order order) {
    if constexpr (!Orders::additions_are_exchanges) return load(rl::mo_acquire);
    begin(order);
    return static_cast<T>(cell_.fetch_add(value, order, $));
  }
  T fetch_sub(T value, rl::memory_order order) {
    begin(order);
    return static_cast<T>(cell_.fetch_sub(value, order, $));
  }
  T fetch_or(T value, rl::memory_order order) {
    begin(order);
    return static_cast<T>(cell_.fetch_or(value, order, $));
  }
  T fetch_and(T value, rl::memory_order order) {
    begin(order);
    return static_cast<T>(cell_.fetch_and(value, order, $));
  }

 private:
  static void begin(rl::memory_order order) {
    if (FenceFirst && order == rl::mo_seq_cst) rl::atomic_thread_fence(rl::mo_seq_cst, $);
  }

  template <bool Weak>
  bool compare_exchange(T& expected, T desired, rl::memory_order success, rl::memory_order failure) {
    begin(success);
    if constexpr (!Orders::exchanges_are_atomic) {
      const T before = load(rl::mo_acquire);
      const bool equal = before == expected;
      expected = before;
      if (equal) store(desired, rl::mo_release);
      return equal;
    }
    auto seen = static_cast<cell>(expected);
    const bool done = cell_.compare_exchange(rl::bool_t<Weak>(), seen, static_cast<cell>(desired), success,
                                             for_failure(success, failure), $);
    expected = static_cast<T>(seen);
    return done;
  }

  rl::atomic<cell> cell_;
};

// The form of load_after_fence to check. False: the fence. True: the exchange of ThreadSanitizer builds.
inline bool fence_by_exchange = false;

template <class Orders = orders, bool FenceFirst = false>
struct relacy_atomics : Orders {
  template <class T>
  using atomic = relacy_atomic<T, Orders, FenceFirst>;

  static void pause(unsigned) { rl::yield(1, $); }

  // A light and a heavy fence order the two ends as two full ones do.
  static void light_fence() {
    if constexpr (Orders::light_fences) rl::atomic_thread_fence(rl::mo_seq_cst, $);
  }
  static void heavy_fence() {
    if constexpr (Orders::heavy_fences) rl::atomic_thread_fence(rl::mo_seq_cst, $);
  }

  // Both forms of std_atomics::load_after_fence. For the exchange, acquire and release must be enough.
  template <class T>
  static T load_after_fence(atomic<T>& word) {
    if constexpr (!Orders::fences) return word.load(rl::mo_relaxed);
    if (fence_by_exchange) return word.fetch_add(0, rl::mo_acq_rel);
    rl::atomic_thread_fence(rl::mo_seq_cst, $);
    return word.load(rl::mo_relaxed);
  }
};

// ---- blocking ----

class relacy_mutex {
 public:
  void lock() { mutex_.lock($); }
  void unlock() { mutex_.unlock($); }

 private:
  friend class relacy_condition_variable;
  rl::mutex mutex_;
};

// Sometimes wakes up without a reason.
class relacy_condition_variable {
 public:
  void notify_one() { condition_.notify_one($); }
  void notify_all() { condition_.notify_all($); }
  void wait(std::unique_lock<relacy_mutex>& lock) { condition_.wait(lock.mutex()->mutex_, $); }

 private:
  rl::condition_variable condition_;
};

// The parker's Policy.
template <class Orders = orders>
struct relacy_parking : relacy_atomics<Orders, true> {
  using mutex = relacy_mutex;
  using condition_variable = relacy_condition_variable;
};

// ---- running ----

// Runs `Test` in that many random interleavings. False, with the history of the failing one printed, if one fails.
template <class Test>
bool holds(unsigned interleavings) {
  rl::test_params params;
  params.iteration_count = interleavings;
  params.execution_depth_limit = 20'000;  // scheduling points, beyond which it is a livelock
  std::ostream nowhere(nullptr);
  params.progress_stream = &nowhere;
  return rl::simulate<Test>(params);
}

}  // namespace model
