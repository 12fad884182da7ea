#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite::detail {

// A first-in-first-out list through the items' own `next` pointers. No allocation. Not synchronised.
template <class T>
class intrusive_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(T& item) noexcept {
    item.next = nullptr;
    (head_ ? tail_->next : head_) = &item;
    tail_ = &item;
    ++size_;
  }

  // Takes the oldest item, or null.
  T* pop() noexcept {
    T* const item = head_;
    if (item) {
      head_ = item->next;
      --size_;
    }
    return item;
  }

  // Moves all items of `other` to the end of this list.
  void splice(intrusive_queue& other) noexcept {
    if (other.empty()) return;
    (head_ ? tail_->next : head_) = other.head_;
    tail_ = other.tail_;
    size_ += other.size_;
    other = {};
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
  std::size_t size_ = 0;
};

// Links of an item in an intrusive_list.
struct list_hook {
  list_hook* before = nullptr;
  list_hook* after = nullptr;
  [[nodiscard]] bool linked() const noexcept { return before != nullptr; }
};

// A doubly linked list of items derived from list_hook: oldest first, any item removed in constant time. No
// allocation. Not synchronised. Destroying it does not touch the items.
template <class T>
class intrusive_list {
 public:
  intrusive_list() = default;
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;

  [[nodiscard]] bool empty() const noexcept { return root_.after == &root_; }
  [[nodiscard]] T& front() noexcept { return static_cast<T&>(*root_.after); }
  [[nodiscard]] T& back() noexcept { return static_cast<T&>(*root_.before); }

  void push_back(T& item) noexcept { insert(*root_.before, item); }
  void push_front(T& item) noexcept { insert(root_, item); }

  // Takes the oldest item, or null.
  T* pop_front() noexcept {
    if (empty()) return nullptr;
    T& item = front();
    remove(item);
    return &item;
  }

  // Calls visit(T&) for all, oldest first.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (list_hook* at = root_.after; at != &root_; at = at->after) visit(static_cast<T&>(*at));
  }

  static void remove(T& item) noexcept {
    item.before->after = item.after;
    item.after->before = item.before;
    item.before = item.after = nullptr;
  }

 private:
  static void insert(list_hook& position, list_hook& item) noexcept {
    item.before = &position;
    item.after = position.after;
    position.after->before = &item;
    position.after = &item;
  }

  list_hook root_{&root_, &root_};
};

}  // namespace ulexite::detail
