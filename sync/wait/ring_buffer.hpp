#pragma once

#include <ulexite/runtime/wait/channel_head.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace ulexite::detail {

// The place of a value in a ring_buffer. A value is beside the buffer if its move may throw, because a growth could not
// undo earlier moves after a failure.
template <class T>
using ring_slot = std::conditional_t<std::is_nothrow_move_constructible_v<T>, T, std::unique_ptr<T>>;

// Allocates the block of a ring_buffer of T. May be specialised.
template <class T>
struct ring_memory {
  static void* allocate(std::size_t slots) { return std::allocator<ring_slot<T>>().allocate(slots); }
  static void release(void* memory, std::size_t slots) noexcept {
    std::allocator<ring_slot<T>>().deallocate(static_cast<ring_slot<T>*>(memory), slots);
  }
};

// A first-in-first-out queue in one block of memory that doubles when it is full. A queue that becomes empty starts at
// the beginning of its block, so that few values stay in few pages, and releases a block of more than 64 KiB. Until
// then it allocates nothing once it is large enough, except for values beside it. Not synchronised. T may be incomplete
// until a member function is used.
template <class T>
class ring_buffer {
 public:
  ring_buffer() = default;
  ring_buffer(const ring_buffer&) = delete;
  ring_buffer& operator=(const ring_buffer&) = delete;
  ~ring_buffer() {
    destroy_all();
    release();
  }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Whether the next push makes the block larger.
  [[nodiscard]] bool full() const noexcept { return size_ == room_; }

  // Adds a value. If the move throws, nothing was added.
  void push(T&& value) {
    if (full()) grow();
    push_in_room(std::move(value));
  }
  // Adds a value to a buffer that is not full().
  void push_in_room(T&& value) {
    if constexpr (stands_alone()) {
      std::construct_at(at(size_), std::make_unique<T>(std::move(value)));
    } else {
      std::construct_at(at(size_), std::move(value));
    }
    ++size_;
  }

  // The oldest value; there is one.
  T& front() noexcept {
    if constexpr (stands_alone()) {
      return **at(0);
    } else {
      return *at(0);
    }
  }

  // Destroys the oldest value.
  void pop() noexcept {
    std::destroy_at(at(0));
    ++first_;
    if (--size_ == 0) rewind();
  }

 private:
  static constexpr std::size_t smallest_room = 4, largest_kept = 64 * 1024;  // slots; bytes
  static constexpr bool stands_alone() noexcept { return !std::is_same_v<ring_slot<T>, T>; }
  static constexpr std::size_t bytes(std::size_t slots) noexcept { return slots * sizeof(ring_slot<T>); }
  auto at(std::size_t i) noexcept { return static_cast<ring_slot<T>*>(memory_) + ((first_ + i) & (room_ - 1)); }

  void rewind() noexcept {
    first_ = 0;
    if (room_ <= smallest_room || bytes(room_) <= largest_kept) [[likely]]
      return;
    release();
    memory_ = nullptr;
    room_ = 0;
  }

  void grow() {
    ring_buffer larger;
    larger.room_ = room_ == 0 ? smallest_room : room_ * 2;
    larger.memory_ = ring_memory<T>::allocate(larger.room_);
    if (bytes(larger.room_) > largest_kept)
      large_channel_bytes.fetch_add(bytes(larger.room_), std::memory_order_relaxed);  // counter
    for (; larger.size_ < size_; ++larger.size_)
      std::construct_at(larger.at(larger.size_), std::move(*at(larger.size_)));
    std::swap(memory_, larger.memory_);
    std::swap(room_, larger.room_);
    std::swap(first_, larger.first_);
  }

  void destroy_all() noexcept {
    for (std::size_t i = 0; i < size_; ++i) std::destroy_at(at(i));
  }
  [[gnu::noinline]] void release() noexcept {
    if (!memory_) return;
    if (bytes(room_) > largest_kept) large_channel_bytes.fetch_sub(bytes(room_), std::memory_order_relaxed);  // counter
    ring_memory<T>::release(memory_, room_);
  }

  void* memory_ = nullptr;  // for room_ slots
  std::size_t first_ = 0;   // modulo room_ it is the place; grows until the buffer is empty
  std::size_t room_ = 0;    // a power of two, or 0
  std::size_t size_ = 0;    // not beside first_, because g++ would change both at once through vector registers, which
                            // is slower
};

}  // namespace ulexite::detail
