#pragma once

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/stack.hpp>

#include <cstddef>
#include <mutex>

namespace ulexite::detail {

class stack_slab;

// The unused stacks of one size. Pools live as long as the process; all runtimes share them. Any thread.
//
// The last returned stack is the first taken, because its memory is committed and warm. There are three layers, by age:
//   recent_   returned since the last trim
//   rested_   unused since the last trim: the next trim cleans them
//   clean_    no memory committed
// After these, new stacks are carved. take() uses them in this order. So no thread has needed the stacks in rested_
// since the last trim. Their number is the low-water mark of the pool, without counting or walking.
class stack_pool {
 public:
  // The pool of stacks of `size` bytes, without the guard. `size` is rounded up to the next power of two of at least 16
  // KiB (at least four pages). Throws std::invalid_argument that names the size if it is above 1 GiB.
  static stack_pool& of_size(std::size_t size);

  // Takes a stack, and carves a new one if none is left. Null if the system refuses the memory; errno is set.
  stack* take() noexcept { return take(1); }
  // Takes up to `count` stacks as a list through `next`; null if there is none. For two or more it commits the topmost
  // pages.
  stack* take(std::size_t count) noexcept;
  // Ensures that the pool has at least one stack, free or in use. Throws std::system_error if the system refuses the
  // first.
  void ensure_one();
  // Returns a list (through `next`) of stacks to this pool, and sets `owner` to null. Checks canaries: reports a late
  // overflow, and ends the process. For this report an owner that is still set must be alive.
  void give(stack* list) noexcept;
  // Takes a stack of any pool out of use for ever, with its frames, because others may refer to them. Leak checkers
  // find the objects that the frames own. `left` is the saved context of the frames.
  static void keep(stack& abandoned, const context& left) noexcept;

  // Returns memory to the system: of stacks unused since the last trim, or with `all` of every unused stack. Returns
  // the number of cleaned stacks. Any thread; call it every few seconds. Stacks under cleaning cannot be taken, so a
  // take() at that time may make new ones.
  std::size_t trim(bool all = false) noexcept;
  // Trims every pool.
  static std::size_t trim_all(bool all = false) noexcept;

  // Bytes of each stack, without its guard.
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

  mutable spin_lock lock_;  // guards the members below
  stack* recent_ = nullptr;
  stack* rested_ = nullptr;
  stack* clean_ = nullptr;
  stack_slab* slab_ = nullptr;  // the source of new stacks
  std::size_t next_ = 0;        // its first stack not made yet
  std::size_t carved_ = 0;
  std::size_t unused_ = 0;  // in any of the layers, or being cleaned
};

}  // namespace ulexite::detail
