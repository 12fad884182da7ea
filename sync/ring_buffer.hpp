#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace ulexite::detail {

// A first-in-first-out queue in one block of memory that doubles when it is full: no allocation once it has grown to
// what is needed. Not synchronised.
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
  // Does the next push make the block larger?
  [[nodiscard]] bool full() const noexcept { return size_ == room_; }

  // If the move throws, nothing was added.
  void push(T&& value) {
    if (full()) grow();
    push_in_room(std::move(value));
  }
  // The same if it is not full().
  void push_in_room(T&& value) {
    std::construct_at(at(size_), std::move(value));
    ++size_;
  }

  // The oldest value; there is one.
  T& front() noexcept { return *at(0); }

  // Destroys the oldest value.
  void pop() noexcept {
    std::destroy_at(at(0));
    ++first_;
    --size_;
  }

 private:
  T* at(std::size_t i) noexcept { return memory_ + ((first_ + i) & (room_ - 1)); }

  void grow() {
    ring_buffer larger;
    larger.room_ = std::max<std::size_t>(room_ * 2, 4);
    larger.memory_ = std::allocator<T>().allocate(larger.room_);
    for (; larger.size_ < size_; ++larger.size_)
      std::construct_at(larger.memory_ + larger.size_, std::move_if_noexcept(*at(larger.size_)));
    std::swap(memory_, larger.memory_);
    std::swap(room_, larger.room_);
    std::swap(first_, larger.first_);
  }

  void destroy_all() noexcept {
    for (std::size_t i = 0; i < size_; ++i) std::destroy_at(at(i));
  }
  void release() noexcept {
    if (memory_) std::allocator<T>().deallocate(memory_, room_);
  }

  T* memory_ = nullptr;
  std::size_t first_ = 0;  // counts on; the rest of a division by room_ is the place
  std::size_t room_ = 0;   // a power of two, or 0
  std::size_t size_ = 0;   // not beside first_: g++ would change both at once, by a detour through vector registers
};

}  // namespace ulexite::detail
