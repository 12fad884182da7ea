#pragma once

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/stack.hpp>
#include <ulexite/runtime/agent.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace ulexite::detail {

// The blocks that fibers are made in: an agent, then room for a task with its closure and result. Blocks are recycled
// and stay agents as long as the pool lives; a pool outlives its runtime by the handles that still refer to finished
// fibers.
class task_pool {
 public:
  static constexpr std::size_t granule = 64;
  static constexpr std::size_t classes = 7;  // blocks of 128, 192, ... 512 bytes
  static constexpr std::size_t largest_room = granule * (classes + 1) - sizeof(agent);

  // The blocks one worker keeps at hand.
  struct cache {
    struct shelf {
      agent* free = nullptr;
      unsigned count = 0;
    } shelves[classes];
  };

  using unhandled_handler = std::function<void(std::string_view, std::exception_ptr)>;

  // `handler`: told of exceptions that nobody took; null: report and terminate. It stands here because a handle may be
  // dropped after the runtime's end.
  static task_pool* make(unhandled_handler handler) { return new task_pool(std::move(handler)); }

  [[nodiscard]] const std::shared_ptr<const unhandled_handler>& handler() const noexcept { return handler_; }

  // Room for `size` <= largest_room bytes, aligned to 16. `own` is the calling worker's, or null on another thread.
  // Throws std::bad_alloc.
  void* allocate(std::size_t size, cache* own);
  // Gives `room` back. Any thread; `own` as above, of the pool's own runtime.
  static void deallocate(void* room, cache* own) noexcept;
  // The pool that `room` is of.
  static task_pool& of(void* room) noexcept;

  // Calls visit(agent&) for every block that was ever used, whatever it holds now. Any thread.
  template <class Visit>
  void for_each(Visit&& visit) {
    const std::lock_guard lock(lock_);
    for (slab* s = slabs_; s; s = s->next)
      for (std::size_t i = 0; i < s->carved; ++i) visit(s->block(i));
  }

  // The runtime ends: the pool deletes itself once its last block has come back.
  void retire() noexcept;

 private:
  static constexpr std::size_t slab_size = 256 * 1024;
  static constexpr unsigned batch = 32;

  struct slab {
    task_pool* pool;
    slab* next;
    std::size_t block_size;
    std::size_t carved;

    agent& block(std::size_t i) noexcept {
      return *reinterpret_cast<agent*>(reinterpret_cast<char*>(this) + granule + i * block_size);
    }
  };

  explicit task_pool(unhandled_handler handler)
      : handler_(std::make_shared<const unhandled_handler>(std::move(handler))) {}
  ~task_pool();

  static std::size_t class_of(std::size_t size) noexcept;
  static slab& slab_of(agent& agent) noexcept;
  void refill(std::size_t size_class, cache::shelf& shelf, unsigned count);
  agent& carve(std::size_t size_class);
  bool give(agent& block) noexcept;

  const std::shared_ptr<const unhandled_handler> handler_;  // may outlive the pool
  spin_lock lock_;                                          // guards all below
  slab* slabs_ = nullptr;
  slab* open_[classes]{};  // the slab that blocks are carved from
  cache central_;
  bool retired_ = false;
  std::size_t orphans_ = 0;  // blocks in use after retire
};

// Tells `handler`, or if it is empty reports and terminates.
void report_unhandled(const task_pool::unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept;

}  // namespace ulexite::detail
