// Pairings
//   A  make stores the directory, release  ->  entry_of loads it, acquire: a thread that sees the directory may read
//      it.
//   B  publish stores a slab in the directory, release  ->  holding loads it, acquire: it sees the slab complete.

#include <ulexite/fiber/stack_slab.hpp>

#include <ulexite/fiber/stack_guard.hpp>
#include <ulexite/fiber/valgrind.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace ulexite::detail {
namespace {

// The directory finds the slab of an address with two loads. A signal handler may do this, and it is cheap for programs
// that fault on purpose (a garbage collector's write barrier). The directory has an entry for each multiple of 64 MiB
// of the address space. The entry names the slab that covers this multiple. A slab has at least 64 MiB, so it covers at
// least one multiple. An address within a slab is between two entries, and at least one of them names the slab.
using entry = std::atomic<stack_slab*>;
constexpr std::size_t address_bits = 48;  // mmap returns no higher address unless requested
constexpr std::size_t granule = stack_slab::space;
constexpr std::size_t entries = ((std::size_t{1} << address_bits) / granule) + 1;

constinit std::atomic<entry*> directory{nullptr};

char* map(std::size_t bytes) noexcept {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // A huge page under a stack would commit 2 MiB instead of the 4 KiB that it needs. Kernels without huge pages refuse
  // the advice.
  const int error = errno;
  if (::madvise(memory, bytes, MADV_NOHUGEPAGE) != 0) errno = error;
  return static_cast<char*>(memory);
}

// Maps the directory on first use: 32 MiB of address space, a page of memory for each 512 slabs in a row.
entry* open_directory() noexcept {
  entry* here = directory.load(std::memory_order_acquire);  // A
  if (here) return here;
  char* const memory = map(entries * sizeof(entry));
  if (!memory) return nullptr;
  entry* const made = reinterpret_cast<entry*>(memory);  // zero bytes are null entries
  if (directory.compare_exchange_strong(here, made, std::memory_order_release, std::memory_order_acquire))
    return made;  // A
  ::munmap(memory, entries * sizeof(entry));
  return here;
}

std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

stack_slab* stack_slab::make(std::size_t stack_size) noexcept {
  const std::size_t guard = stack_guard_size(stack_size), stride = guard + stack_size;
  const std::size_t count = (space + stride - 1) / stride;
  const std::size_t head = round_up(sizeof(stack) * (count + 1), page_size());
  const std::size_t bytes = head + count * stride;
  char* const memory = map(bytes);
  if (!memory) return nullptr;
  auto* const slab = new (memory) stack_slab(memory + head, stride, count, guard);
  if (slab->publish()) return slab;
  ::munmap(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}

// False if there is no directory, or the slab is beyond it.
bool stack_slab::publish() noexcept {
  entry* const table = open_directory();
  const std::size_t begin = round_up(reinterpret_cast<std::uintptr_t>(stacks_), granule) / granule;
  const std::size_t end = round_up(reinterpret_cast<std::uintptr_t>(stacks_ + count_ * stride_), granule) / granule;
  if (!table || end > entries) return false;
  for (std::size_t i = begin; i < end; ++i) table[i].store(this, std::memory_order_release);  // B
  return true;
}

const stack* stack_slab::holding(const void* address) noexcept {
  const entry* const table = directory.load(std::memory_order_acquire);  // A
  const std::size_t below = reinterpret_cast<std::uintptr_t>(address) / granule;
  if (!table || below + 1 >= entries) return nullptr;
  for (std::size_t i = below; i <= below + 1; ++i) {
    const stack_slab* const slab = table[i].load(std::memory_order_acquire);  // B
    if (!slab) continue;
    if (const stack* const found = slab->holding_here(static_cast<const char*>(address))) return found;
  }
  return nullptr;
}

const stack* stack_slab::holding_here(const char* address) const noexcept {
  if (address < stacks_ || address >= stacks_ + count_ * stride_) return nullptr;
  return descriptor(static_cast<std::size_t>(address - stacks_) / stride_);
}

const stack* stack_slab::guarded(const void* address) noexcept {
  const stack* const found = holding(address);
  return found && address < found->low ? found : nullptr;
}

stack* stack_slab::carve(std::size_t first, std::size_t count) noexcept {
  for (std::size_t i = first; i < first + count; ++i) {
    stack& made = *new (descriptor(i)) stack;
    made.next = i + 1 < first + count ? descriptor(i + 1) : nullptr;
    made.low = stacks_ + i * stride_ + guard_size_;
    made.high = stacks_ + (i + 1) * stride_;
    made.guard = static_cast<std::uint32_t>(guard_size_);
    register_with_valgrind(made.low, made.high);
  }
  place_stack_guards(descriptor(first));
  return descriptor(first);
}

// The first place is the slab's own.
stack* stack_slab::descriptor(std::size_t index) const noexcept {
  static_assert(sizeof(stack_slab) <= sizeof(stack));
  return reinterpret_cast<stack*>(const_cast<stack_slab*>(this)) + 1 + index;
}

}  // namespace ulexite::detail
