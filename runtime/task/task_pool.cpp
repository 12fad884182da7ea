// The supply of blocks, and their return. A worker's free list gives and takes without a lock. Behind it are chains of
// returned blocks, and behind these the slabs, from which new blocks are carved. Slabs are aligned to their size, so
// the slab and the pool of a block follow from its address. No slab is returned to the system before the pool ends.

#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/task/debug_table.hpp>
#include <ulexite/runtime/task/task_pool.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace ulexite::detail {

// Lock held.
void task_pool::push_chain(agent& first, unsigned count) noexcept {
  // The room of an unused block has space for the link.
  chain_at(first) = {chains_[first.size_class], count};
  chains_[first.size_class] = &first;
}

// Gives away all blocks except the last `batch` that were added to the free list. The chain is cut before the lock is
// taken.
void task_pool::give_batch(cache::free_list& free_list) noexcept {
  // The newest blocks stay, because their memory is in the processor's caches.
  agent* last_kept = free_list.free;
  for (unsigned i = 1; i < batch; ++i) last_kept = last_kept->next_free;
  agent& first = *std::exchange(last_kept->next_free, nullptr);
  task_pool& pool = of(&first);
  const std::lock_guard lock(pool.lock_);
  pool.push_chain(first, free_list.count - batch);
  free_list.count = batch;
}

// Fills an empty free list with a returned chain, or with new blocks.
void task_pool::refill(unsigned size_class, cache::free_list& free_list) {
  const std::lock_guard lock(lock_);
  if (agent* const first = chains_[size_class]) {
    const chain taken = chain_at(*first);
    chains_[size_class] = taken.next;
    free_list = {first, taken.count};
    return;
  }
  free_list = carve(size_class, batch);
}

// For a thread that keeps no blocks.
agent* task_pool::take_one(unsigned size_class) {
  const std::lock_guard lock(lock_);
  agent* const first = chains_[size_class];
  if (!first) return carve(size_class, 1).free;
  const chain taken = chain_at(*first);
  chains_[size_class] = taken.next;
  // The rest of the chain goes back, with its second block as the head.
  if (taken.count > 1) push_chain(*first->next_free, taken.count - 1);
  return first;
}

// Lock held. Up to `most` new blocks, at least one, from the open slab of their class. They are in the order of their
// addresses, which suits the processor's prefetcher. The agent of a block is made once, and stays an agent while the
// block is unused. A walk over all blocks may read it at any time. The count is stored after that: the walk reads the
// count first.
task_pool::cache::free_list task_pool::carve(unsigned size_class, unsigned most) {
  slab*& open = open_[size_class];
  const std::size_t block_size = granule * (size_class + 2), places = places_of(block_size);
  const auto carved_of = [](const slab* s) { return s->carved.load(std::memory_order_relaxed); };  // lock_ held
  if (!open || carved_of(open) == places) open = &make_slab(block_size);
  const std::size_t carved = carved_of(open), end = std::min(carved + most, places);
  agent* first = nullptr;
  for (std::size_t i = end; i > carved; --i) {
    agent* const block = new (&open->block(i - 1)) agent;
    block->size_class = static_cast<std::uint8_t>(size_class);
    block->next_free = std::exchange(first, block);
    poison(*block);
  }
  open->carved.store(end, std::memory_order_release);  // B
  return {first, static_cast<unsigned>(end - carved)};
}

// A program with few fibers takes slabs one by one. A program with many takes huge pages, because a fault for every 4
// KiB would cost as much as the rest of a spawn. Any fiber may wait with a timer, at most one, and a wait cannot fail.
// So the room for its timer, which any worker may arm, is made here, where a lack of memory can be reported.
task_pool::slab& task_pool::make_slab(std::size_t block_size) {
  const std::size_t places = places_of(block_size);
  loop_.reserve_timers(std::max(places_ + places, least_timers));
  const bool begins_chunk = left_in_chunk_ == 0;
  if (begins_chunk) {
    const std::size_t size = slab_count_ < single_slabs ? slab_size : chunk_size;
    void* const memory = std::aligned_alloc(size, size);
    if (!memory) throw std::bad_alloc();
    if (size == chunk_size) ::madvise(memory, size, MADV_HUGEPAGE);  // if refused, small pages work too
    next_slab_ = static_cast<char*>(memory);
    left_in_chunk_ = size;
  }
  auto* const before = slabs_.load(std::memory_order_relaxed);  // lock_ held
  auto* const made = new (next_slab_) slab{this, runtime_, before, block_size, 0, begins_chunk};
  slabs_.store(made, std::memory_order_release);  // B
  ++slab_count_;
  places_ += places;
  next_slab_ += slab_size;
  left_in_chunk_ -= slab_size;
  return *made;
}

// The last block of a pool that is shut takes the pool with it.
void task_pool::give_from_outside(void* room) noexcept {
  agent& block = block_of(room);
  task_pool& pool = *slab_of(&block).pool;
  bool last = false;
  {
    const std::lock_guard lock(pool.lock_);
    clear(block);  // shut counts the blocks in use with the lock held
    block.next_free = nullptr;
    if (block.held_locks == 0) pool.push_chain(block, 1);  // otherwise the next fiber would seem to hold its locks
    last = pool.shut_ && --pool.orphans_ == 0;
  }
  if (last) delete &pool;
}

task_pool::place task_pool::first() const noexcept {
  place at;
  at.in = slabs_.load(std::memory_order_acquire);  // B
  return at;
}

agent* task_pool::next(place& at) noexcept {
  for (; at.in; at.in = at.in->next, at.index = 0)
    if (at.index < at.in->carved.load(std::memory_order_acquire)) return &at.in->block(at.index++);  // B
  return nullptr;
}

// Called when the runtime has ended. From now on no worker keeps blocks, so each block is returned by
// give_from_outside, which counts the orphans down. The block of a fiber that was abandoned after its start is never
// returned.
void task_pool::shut() noexcept {
  bool empty = false, kept = false;
  {
    const std::lock_guard lock(lock_);
    for_each_unlocked([&](const agent& block) {
      orphans_ += block.in_use;
      kept |= block.kept;
    });
    shut_ = true;
    empty = orphans_ == 0;
  }
  if (empty) delete this;
  if (kept) keep_for_ever();
}

// Leak checkers find the pool here, and the objects that its blocks own.
void task_pool::keep_for_ever() noexcept {
  static constinit spin_lock guard;
  static constinit task_pool* all = nullptr;
  const std::lock_guard lock(guard);
  next_kept_ = std::exchange(all, this);
}

// No slab is made before the first spawn.
task_pool::task_pool(runtime_state& rt, event_loop& loop, unhandled_handler handler)
    : runtime_(rt), loop_(loop), handler_(std::make_shared<const unhandled_handler>(std::move(handler))) {
  enter_in_debug_table(*this);
}

// From the newest slab to the oldest, because a chunk's first slab is its oldest, and frees the whole chunk.
task_pool::~task_pool() {
  remove_from_debug_table(*this);
  for (slab *last = slabs_.load(std::memory_order_relaxed), *next; last; last = next) {  // no other thread refers to it
    next = last->next;
#if ULEXITE_ASAN
    __asan_unpoison_memory_region(last, slab_size);
#endif
    if (last->begins_chunk) std::free(last);  // the oldest slab of its chunk, so the last one visited
  }
}

}  // namespace ulexite::detail
