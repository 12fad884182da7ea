// The table that lets a debugger find the fibers without debug information: numbers of this build's layout, and lists
// of the pools and recorders. The scripts in tools/gdb read it, also from a core file.

#include <ulexite/fiber/jump.hpp>
#include <ulexite/runtime/task/debug_table.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/task/task_pool.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

// Base classes come first and single, so the offsets are what they seem.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace ulexite::detail {
namespace {

// The lists have fixed sizes, because a debugger reads them without running code.
constexpr std::size_t most_pools = 256;  // those of more runtimes are not found
constexpr std::size_t most_rings = 256;  // nor more recorders
constexpr std::size_t kinds = 32;

}  // namespace

// Nested in task_pool, because the members are private.
struct task_pool::layout {
  static constexpr std::uint32_t slabs = offsetof(task_pool, slabs_), next = offsetof(slab, next),
                                 block_size = offsetof(slab, block_size), carved = offsetof(slab, carved),
                                 slab_bytes = slab_size;
};

// Read by a debugger while nothing runs. The script knows the order of the numbers. A change of their order or meaning
// is a new version.
struct debug_table {
  std::uint32_t version = 3;
  // From a pool to its blocks: the list of slabs, and in each slab the blocks one behind the other.
  std::uint32_t slab_size = task_pool::layout::slab_bytes;
  std::uint32_t pool_slabs = task_pool::layout::slabs;
  std::uint32_t slab_next = task_pool::layout::next;
  std::uint32_t slab_block_size = task_pool::layout::block_size;
  std::uint32_t slab_carved = task_pool::layout::carved;
  std::uint32_t first_block = task_pool::granule;
  // In a block: the agent, then the task.
  std::uint32_t agent_size = sizeof(agent);
  std::uint32_t agent_phase = offsetof(agent, word);         // wait_word's, its first member
  std::uint32_t agent_in_use = offsetof(agent, budget) + 1;  // its lowest bit
  // In a task: its state, the object and kind of its wait, its name and its origin. `task_object` is valid while it
  // waits.
  std::uint32_t task_object = offsetof(task, next);
  std::uint32_t task_frame = offsetof(task, saved);
  std::uint32_t task_state = offsetof(task, state);
  std::uint32_t task_wait_bits = offsetof(task, wait_bits);
  std::uint32_t task_wait_since = offsetof(task, wait_since);
  std::uint32_t task_stack = offsetof(task, current_stack);
  std::uint32_t task_id = offsetof(task, id);
  std::uint32_t task_name = offsetof(task, name);
  std::uint32_t task_where = offsetof(task, where);
  // The bounds of its stack.
  std::uint32_t stack_low = offsetof(stack, low);
  std::uint32_t stack_high = offsetof(stack, high);
  // The positions of a suspended computation's registers, from its frame on: see jump.hpp and unwind.cpp.
#if ULEXITE_OWN_JUMP
  std::uint32_t saved_pc = 0, saved_fp = 8, resumed_sp = 144;
#elif defined(__x86_64__)
  std::uint32_t saved_pc = 0x40, saved_fp = 0x38, resumed_sp = 0x48;
#else
  std::uint32_t saved_pc = 0xa0, saved_fp = 0x90, resumed_sp = 0xb0;
#endif
  // The last events of each worker (recorder.hpp).
  std::uint32_t ring_words = offsetof(recorder_ring, words);
  std::uint32_t ring_mask = offsetof(recorder_ring, mask);
  std::uint32_t ring_next = offsetof(recorder_ring, next);
  std::uint32_t ring_worker = offsetof(recorder_ring, worker);
  std::uint32_t ring_scale = offsetof(recorder_ring, scale);
  // The words for the kinds of waits, by number.
  const char* kind_names[kinds] = {};
  std::atomic<task_pool*> pools[most_pools] = {};  // State: null, or a pool, written when that is made and retired
  std::atomic<const recorder_ring*> rings[most_rings] = {};  // State: null, or a ring that is recorded into

  // Complete at compile time, so that a debugger can use it at any moment.
  constexpr debug_table() noexcept {
    for (std::size_t i = 0; i < kinds; ++i) kind_names[i] = to_string(static_cast<wait_kind>(i));
  }
};

}  // namespace ulexite::detail

// A note, which strip does not remove, has the distance from its description to the table.
extern "C" {
[[gnu::used, gnu::visibility("hidden")]] constinit ulexite::detail::debug_table ulexite_debug;
}
asm(R"(
.pushsection .note.ulexite, "a", %note
.balign 4
.long 8, 8, 1
.asciz "Ulexite"
1:
.quad ulexite_debug - 1b
.popsection
)");

namespace ulexite::detail {
namespace {

// Changes one place with the value `from` to `to`. If the table is full, the object is not entered, and debuggers miss
// it.
template <class T, std::size_t most>
void exchange(std::atomic<T*> (&places)[most], T* from, T* to) noexcept {
  for (auto& place : places)
    if (T* expected = from; place.compare_exchange_strong(expected, to, std::memory_order_relaxed))  // a debugger's
      return;
}

}  // namespace

void enter_in_debug_table(task_pool& pool) noexcept { exchange<task_pool>(ulexite_debug.pools, nullptr, &pool); }
void remove_from_debug_table(task_pool& pool) noexcept { exchange<task_pool>(ulexite_debug.pools, &pool, nullptr); }
void enter_in_debug_table(const recorder_ring& ring) noexcept {
  exchange<const recorder_ring>(ulexite_debug.rings, nullptr, &ring);
}
void remove_from_debug_table(const recorder_ring& ring) noexcept {
  exchange<const recorder_ring>(ulexite_debug.rings, &ring, nullptr);
}

}  // namespace ulexite::detail
