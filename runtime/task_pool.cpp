#include <ulexite/base/panic.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/runtime/task_pool.hpp>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#if ULEXITE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ulexite::detail {
namespace {

// A block in the pool is out of bounds for AddressSanitizer, but for its agent.
void poison([[maybe_unused]] agent& block) noexcept {
#if ULEXITE_ASAN
  __asan_poison_memory_region(&block + 1, task_pool::granule * (block.size_class + 2) - sizeof(agent));
#endif
}
void unpoison([[maybe_unused]] agent& block) noexcept {
#if ULEXITE_ASAN
  __asan_unpoison_memory_region(&block + 1, task_pool::granule * (block.size_class + 2) - sizeof(agent));
#endif
}

}  // namespace

std::size_t task_pool::class_of(std::size_t size) noexcept {
  const std::size_t granules = (size + sizeof(agent) + granule - 1) / granule;
  return granules < 2 ? 0 : granules - 2;
}

task_pool::slab& task_pool::slab_of(agent& agent) noexcept {
  return *reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(&agent) & ~(slab_size - 1));
}

task_pool& task_pool::of(void* room) noexcept { return *slab_of(*(static_cast<agent*>(room) - 1)).pool; }

void* task_pool::allocate(std::size_t size, cache* own) {
  const std::size_t size_class = class_of(size);
  agent* block = nullptr;
  if (own) {
    auto& shelf = own->shelves[size_class];
    if (!shelf.free) refill(size_class, shelf, batch);
    block = shelf.free;
    shelf.free = block->next_free;
    --shelf.count;
  } else {
    cache::shelf one;
    refill(size_class, one, 1);
    block = one.free;
  }
  block->in_use = true;
  block->shielded = false;
  block->expired = false;
  block->deadline = no_deadline;
  unpoison(*block);
  return block + 1;
}

void task_pool::deallocate(void* room, cache* own) noexcept {
  agent& block = *(static_cast<agent*>(room) - 1);
  block.word.reset();
  poison(block);
  task_pool& pool = *slab_of(block).pool;
  if (!own) {
    if (pool.give(block)) delete &pool;
    return;
  }
  auto& shelf = own->shelves[block.size_class];
  block.in_use = false;
  block.next_free = shelf.free;
  shelf.free = &block;
  if (++shelf.count < 2 * batch) return;
  const std::lock_guard lock(pool.lock_);
  auto& central = pool.central_.shelves[block.size_class];
  for (unsigned i = 0; i < batch; ++i) {
    agent* const moved = shelf.free;
    shelf.free = moved->next_free;
    moved->next_free = central.free;
    central.free = moved;
  }
  shelf.count -= batch;
}

// Puts up to `count` blocks, at least one, on the shelf.
void task_pool::refill(std::size_t size_class, cache::shelf& shelf, unsigned count) {
  const std::lock_guard lock(lock_);
  auto& central = central_.shelves[size_class];
  for (; shelf.count < count; ++shelf.count) {
    agent* block = central.free;
    if (block) {
      central.free = block->next_free;
    } else {
      block = &carve(size_class);
    }
    block->next_free = shelf.free;
    shelf.free = block;
  }
}

agent& task_pool::carve(std::size_t size_class) {
  slab*& open = open_[size_class];
  const std::size_t block_size = granule * (size_class + 2);
  if (!open || granule + (open->carved + 1) * block_size > slab_size) {
    void* const memory = std::aligned_alloc(slab_size, slab_size);
    if (!memory) throw std::bad_alloc();
    open = slabs_ = new (memory) slab{this, slabs_, block_size, 0};
  }
  agent* const block = new (&open->block(open->carved)) agent;
  block->size_class = static_cast<std::uint8_t>(size_class);
  ++open->carved;
  poison(*block);
  return *block;
}

// Returns true when that was the last block of a retired pool.
bool task_pool::give(agent& block) noexcept {
  const std::lock_guard lock(lock_);
  auto& central = central_.shelves[block.size_class];
  block.in_use = false;
  block.next_free = central.free;
  central.free = &block;
  return retired_ && --orphans_ == 0;
}

void report_unhandled(const task_pool::unhandled_handler& handler, const fiber_identity& whose,
                      std::exception_ptr failure) noexcept {
  const char* const name = whose.name ? whose.name : "";
  if (handler) {
    handler(name, failure);
    return;
  }
  const auto report = [&](const char* what) {
    warn("unhandled exception in fiber #%llu '%s' (spawned at %s:%u): %s", static_cast<unsigned long long>(whose.id),
         name, whose.where.file_name(), static_cast<unsigned>(whose.where.line()), what);
    std::terminate();
  };
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    report(e.what());
  } catch (...) {
    report("not a std::exception");
  }
}

void task_pool::retire() noexcept {
  bool empty = false;
  {
    const std::lock_guard lock(lock_);
    for (slab* s = slabs_; s; s = s->next)
      for (std::size_t i = 0; i < s->carved; ++i) orphans_ += s->block(i).in_use;
    retired_ = true;
    empty = orphans_ == 0;
  }
  if (empty) delete this;
}

task_pool::~task_pool() {
  while (slab* const last = slabs_) {
    slabs_ = last->next;
#if ULEXITE_ASAN
    __asan_unpoison_memory_region(last, slab_size);
#endif
    std::free(last);
  }
}

}  // namespace ulexite::detail
