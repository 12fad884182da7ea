#pragma once

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/stack.hpp>

#include <cstddef>
#include <mutex>

namespace ulexite::detail {

class stack_slab;

// The stacks of one size that nobody uses. Pools live as long as the process; all runtimes share them. Any thread.
//
// The last stack given is the first taken: its memory is committed and warm. Below lie three layers, by age:
//   recent_   given since the last trim
//   rested_   unused since the last trim: what the next one cleans
//   clean_    no memory committed
// then come stacks never made. take() goes through them in this order. So what is in rested_ when a trim comes was
// reached by nobody since the last one: the low-water mark of the pool, for which nothing had to be counted or walked.
class stack_pool {
 public:
  // The pool whose stacks have `size` bytes each, besides the guard: `size` is rounded up to the next power of two of
  // at least 16 KiB (at least four pages). Throws std::invalid_argument naming the size when it is above 1 GiB.
  static stack_pool& of_size(std::size_t size);

  // Takes a stack, carving a new one when none is left. Null when the machine refuses the memory (errno says why).
  stack* take() noexcept { return take(1); }
  // Takes up to `count` at once as a list through `next`; null when not even one could be had. Of two or more the
  // topmost pages are committed.
  stack* take(std::size_t count) noexcept;
  // Sees to it that the pool has stacks, free or in use. Throws std::system_error when the machine refuses the first.
  void provide();
  // Gives a list (through `next`) of stacks of this pool back. Nobody owns them any more: `owner` becomes null. Checks
  // canaries: an overflow found late is reported, and ends the process; an owner that is still set must be alive.
  void give(stack* list) noexcept;
  // Takes a stack, of whichever pool, out of use for ever, with the frames that stand on it: others may refer to these.
  // Leak checkers find what the frames own. `left`: where they were left.
  static void keep(stack& abandoned, const context& left) noexcept;

  // Returns the memory of stacks that nobody used since the last trim to the system. `all`: of every unused stack.
  // Returns how many stacks were cleaned. Any thread, meant for a slow period of seconds. Stacks being cleaned cannot
  // be taken, so a take() at that time may make new ones.
  std::size_t trim(bool all = false) noexcept;
  // Trims every pool.
  static std::size_t trim_all(bool all = false) noexcept;

  // Bytes of each stack, besides its guard.
  [[nodiscard]] std::size_t stack_size() const noexcept { return stack_size_; }
  [[nodiscard]] std::size_t carved() const noexcept;  // stacks ever made, except those kept
  [[nodiscard]] std::size_t unused() const noexcept;  // of these, in the pool now

 private:
  struct table;

  explicit constexpr stack_pool(std::size_t size) noexcept : stack_size_(size) {}
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  std::size_t take_unused(std::size_t count, stack**& end) noexcept;
  std::size_t carve(std::size_t count, stack**& end) noexcept;
  bool grow() noexcept;
  std::size_t clean(stack* list) noexcept;

  const std::size_t stack_size_;
  std::mutex growing_;  // taken before lock_: one thread maps a slab, the others wait for it

  mutable spin_lock lock_;  // guards all below
  stack* recent_ = nullptr;
  stack* rested_ = nullptr;
  stack* clean_ = nullptr;
  stack_slab* slab_ = nullptr;  // where new stacks come from
  std::size_t next_ = 0;        // its first stack not made yet
  std::size_t carved_ = 0;
  std::size_t unused_ = 0;  // in any of the layers, or being cleaned
};

}  // namespace ulexite::detail
