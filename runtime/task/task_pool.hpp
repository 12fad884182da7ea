#pragma once

// The memory of fibers: blocks, and the slabs from which they are carved.
//
// State
//   slabs_, carved   read by a walk over all blocks. Written with lock_ held; they only grow.
//
// Pairings
//   B  make_slab stores slabs_, and carve stores carved, release  ->  for_each_unlocked, or first and next, load both,
//      acquire: they see the complete slab, and the agents in its blocks.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/stack.hpp>
#include <ulexite/runtime/task/shutdown_gate.hpp>
#include <ulexite/runtime/task/unhandled.hpp>
#include <ulexite/runtime/wait/agent.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#if ULEXITE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ulexite::detail {

class event_loop;
class runtime_state;

// The blocks of fibers. A block is an agent, then room for a task with its closure and result. Blocks are recycled, and
// stay agents as long as the pool exists. A pool outlives its runtime while handles still refer to finished fibers.
class task_pool {
  struct slab;

 public:
  static constexpr std::size_t granule = 64;
  static constexpr std::size_t classes = 7;  // blocks of 128, 192, ... 512 bytes
  static constexpr std::size_t largest_room = granule * (classes + 1) - sizeof(agent);

  // The blocks that one worker keeps.
  struct cache {
    struct free_list {
      agent* free = nullptr;
      unsigned count = 0;
    } free_lists[classes];
  };

  // The pool of the runtime `rt`. Each of its fibers may have a timer in `loop`. `handler` is kept here, because a
  // handle may be dropped after the runtime's end.
  static task_pool* make(runtime_state& rt, event_loop& loop, unhandled_handler handler) {
    return new task_pool(rt, loop, std::move(handler));
  }

  [[nodiscard]] const std::shared_ptr<const unhandled_handler>& handler() const noexcept { return handler_; }

  // The class of blocks with room for `size` bytes, at most largest_room.
  static constexpr unsigned class_of(std::size_t size) noexcept {
    const std::size_t granules = (size + sizeof(agent) + granule - 1) / granule;
    return granules < 2 ? 0 : static_cast<unsigned>(granules - 2);
  }

  // Returns room in a block of a class, aligned to 16. The caller sets the deadline of its agent. `own` is the calling
  // worker's cache, or null on another thread. Throws std::bad_alloc.
  void* allocate(unsigned size_class, cache* own) {
    if (!own) return room_of(*take_one(size_class));
    if (!own->free_lists[size_class].free) refill(size_class, own->free_lists[size_class]);
    return allocate_cached(size_class, *own);
  }
  // As above, but only from the blocks in `own`; null if there is none.
  [[nodiscard]] static void* allocate_cached(unsigned size_class, cache& own) noexcept {
    auto& free_list = own.free_lists[size_class];
    agent* const block = free_list.free;
    if (!block) [[unlikely]]
      return nullptr;
    free_list.free = block->next_free;
    --free_list.count;
    __builtin_prefetch(free_list.free, 1);  // the next block, which another worker may have used
    return room_of(*block);
  }
  // Returns `room` to the pool. Any thread. `own` is as above, of a worker of the pool's runtime.
  static void deallocate(void* room, cache* own) noexcept {
    if (!own) return give_from_outside(room);
    auto& free_list = own->free_lists[block_of(room).size_class];
    if (free_list.count >= most_kept) give_batch(free_list);
    keep(room, free_list);
  }
  // Where `own` has a place for another block; keep() puts it there. Null if there is none.
  [[nodiscard]] static cache::free_list* place_for(void* room, cache& own) noexcept {
    auto& free_list = own.free_lists[block_of(room).size_class];
    return free_list.count < most_kept ? &free_list : nullptr;
  }
  static void keep(void* room, cache::free_list& free_list) noexcept {
    agent& block = block_of(room);
    clear(block);
    block.next_free = free_list.free;
    free_list.free = &block;
    ++free_list.count;
  }
  // The pool of `room`, and its runtime, if that still exists.
  static task_pool& of(const void* room) noexcept { return *slab_of(room).pool; }
  static runtime_state& runtime_of(const void* room) noexcept { return slab_of(room).rt; }

  // Counts threads outside the runtime that are about to publish something in it.
  shutdown_gate gate;

  // Calls visit(agent&) for every block that was ever used, whatever it holds now. It may miss blocks that are added
  // during the call. It takes no lock and allocates nothing, so a collector may call it while threads are stopped at
  // any point. Any thread.
  template <class Visit>
  void for_each_unlocked(Visit&& visit) const {
    for (slab* s = slabs_.load(std::memory_order_acquire); s; s = s->next) {  // B
      const std::size_t carved = s->carved.load(std::memory_order_acquire);   // B
      for (std::size_t i = 0; i < carved; ++i) visit(s->block(i));
    }
  }
  // The same in steps, between which time may pass: first(), then next() until it returns null.
  class place {
    friend task_pool;
    slab* in = nullptr;
    std::size_t index = 0;
  };
  [[nodiscard]] place first() const noexcept;
  [[nodiscard]] static agent* next(place& at) noexcept;
  // As for_each_unlocked, but misses none.
  template <class Visit>
  void for_each(Visit&& visit) {
    const std::lock_guard lock(lock_);
    for_each_unlocked(std::forward<Visit>(visit));
  }

  // The runtime ends: the pool deletes itself once its last block is returned. With the block of an abandoned fiber it
  // exists for ever.
  void shut() noexcept;

 private:
  friend struct debug_table;
  struct layout;

  // Sizes in bytes. A slab is the unit of alignment; `batch` is the number of blocks that a worker exchanges with the
  // pool.
  static constexpr std::size_t slab_size = 256 * 1024;
  static constexpr std::size_t chunk_size = 2 * 1024 * 1024;    // of a large pool's slabs: a huge page
  static constexpr unsigned single_slabs = 16;                  // before it is a large pool
  static constexpr unsigned batch = 32, most_kept = 2 * batch;  // blocks of a class; the second in one worker's cache
  static constexpr std::size_t least_timers = 8000;             // the first room for timers: enough for the first slabs

  // The head of a slab; its blocks begin one granule behind it. `rt` may refer to a runtime that has ended: only
  // callers in the runtime use it.
  struct slab {
    task_pool* pool;
    runtime_state& rt;
    slab* next;
    std::size_t block_size;
    std::atomic<std::size_t> carved;  // written under the lock. B
    bool begins_chunk;                // it is the start of an allocation, which may have other slabs behind it

    agent& block(std::size_t i) noexcept {
      return *reinterpret_cast<agent*>(reinterpret_cast<char*>(this) + granule + i * block_size);
    }
  };

  task_pool(runtime_state& rt, event_loop& loop, unhandled_handler handler);
  ~task_pool();

  static slab& slab_of(const void* room) noexcept {
    return *reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(room) & ~(slab_size - 1));
  }
  // Links blocks that workers return, many at a time. It is in the room of the first block of each chain.
  struct chain {
    agent* next;
    unsigned count;
  };
  static chain& chain_at(agent& first) noexcept { return *reinterpret_cast<chain*>(&first + 1); }

  // A block in the pool is out of bounds for AddressSanitizer, except its agent and the chain.
  static void poison([[maybe_unused]] agent& block) noexcept {
#if ULEXITE_ASAN
    __asan_poison_memory_region(&chain_at(block) + 1, granule * (block.size_class + 2) - sizeof(agent) - sizeof(chain));
#endif
  }
  static void unpoison([[maybe_unused]] agent& block) noexcept {
#if ULEXITE_ASAN
    __asan_unpoison_memory_region(&chain_at(block) + 1,
                                  granule * (block.size_class + 2) - sizeof(agent) - sizeof(chain));
#endif
  }
  static agent& block_of(void* room) noexcept { return *(static_cast<agent*>(room) - 1); }
  static void* room_of(agent& block) noexcept {
    unpoison(block);
    return &block + 1;
  }
  // Makes the agent of a block that is no longer in use as good as new.
  static void clear(agent& block) noexcept {
    block.word.reset();
    block.in_use = false;
    block.shielded = false;
    block.expired = false;
    poison(block);
  }
  // In task_pool.cpp. take_one, refill, give_batch and give_from_outside take the lock. push_chain, carve and make_slab
  // are called with it held.
  agent* take_one(unsigned size_class);
  void refill(unsigned size_class, cache::free_list& free_list);
  static void give_batch(cache::free_list& free_list) noexcept;
  void push_chain(agent& first, unsigned count) noexcept;
  static void give_from_outside(void* room) noexcept;
  static constexpr std::size_t places_of(std::size_t block_size) noexcept {
    return (slab_size - granule) / block_size;  // in one slab
  }
  cache::free_list carve(unsigned size_class, unsigned most);
  slab& make_slab(std::size_t block_size);
  void keep_for_ever() noexcept;

  runtime_state& runtime_;
  event_loop& loop_;                                        // destroyed when the pool is shut
  const std::shared_ptr<const unhandled_handler> handler_;  // may outlive the pool
  spin_lock lock_;                                          // guards the members below
  std::atomic<slab*> slabs_{nullptr};                       // the last one made. B
  slab* open_[classes]{};                                   // the slabs from which blocks are carved, by class
  unsigned slab_count_ = 0;                                 // decides between single slabs and chunks
  std::size_t places_ = 0;                                  // for blocks, in all slabs
  char* next_slab_ = nullptr;                               // in the chunk that was allocated last
  std::size_t left_in_chunk_ = 0;   // bytes behind next_slab_; 0: the next slab needs an allocation
  agent* chains_[classes]{};        // the first block of the last returned chain, by class; see chain
  bool shut_ = false;               // the runtime has ended: the last orphan deletes the pool
  std::size_t orphans_ = 0;         // blocks in use after shut
  task_pool* next_kept_ = nullptr;  // in the list of pools that are kept for ever
};

}  // namespace ulexite::detail
