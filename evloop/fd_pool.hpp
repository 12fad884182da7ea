#pragma once

#include <ulexite/base/spin_lock.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ulexite::detail {

// Memory for the sources of a loop. It is recycled, but never freed while the loop exists, because event_del does not
// wait for the event's running callback (loop_thread_scope). So a callback may reach a source that was closed, or that
// is open again for another descriptor. It must find a source there (readiness says how it then acts). `Source` needs
// a member `Source* next`.
template <class Source>
class fd_pool {
 public:
  // Throws std::bad_alloc.
  Source& take() {
    for (;;) {
      {
        std::lock_guard guard(lock_);
        if (Source* const source = pop(free_)) return *source;
      }
      grow();
    }
  }

  void give_back(Source& source) noexcept {
    std::lock_guard guard(lock_);
    push(free_, source);
  }

 private:
  static constexpr std::size_t slab_size = 64;

  static void push(Source*& list, Source& source) noexcept {
    source.next = list;
    list = &source;
  }
  static Source* pop(Source*& list) noexcept {
    Source* const source = list;
    if (source) list = source->next;
    return source;
  }

  void grow() {
    auto slab = std::make_unique<Source[]>(slab_size);
    std::lock_guard guard(lock_);
    slabs_.push_back(std::move(slab));
    for (std::size_t i = slab_size; i-- > 0;) push(free_, slabs_.back()[i]);
  }

  spin_lock lock_;  // guards the rest
  Source* free_ = nullptr;
  std::vector<std::unique_ptr<Source[]>> slabs_;
};

}  // namespace ulexite::detail
