#pragma once

// Guards below stacks, which detect overflows. There are three kinds, tried in this order for each stack:
//   installed   MADV_GUARD_INSTALL (Linux 6.13): faults when touched, costs no memory map, 0.3 us once.
//   protected_  mprotect(PROT_NONE): faults when touched, but costs two memory maps. A process may have 65,530 maps by
//               default (vm.max_map_count), so at most a quarter of them are used for guards.
//   canary      words that are compared when the stack is returned. So an overflow is found late, and only if it hit
//               them. It costs a page of memory. The first canary prints one warning for the process.
//
// Environment variables for tests and difficult machines, read at the first use in a process:
//   ULEXITE_STACK_GUARDS=install|mprotect|canary   the first kind to try (if it fails, the later kinds follow)
//   ULEXITE_STACK_GUARD_BUDGET=n                   the largest number of guards by mprotect

#include <ulexite/fiber/stack.hpp>

#include <cstddef>

namespace ulexite::detail {

// Bytes of guard below a stack of `size` bytes: a quarter of it, at least 64 KiB and at most 1 MiB. Only a larger frame
// can skip the guard, if it is compiled without -fstack-clash-protection, which probes each page. The guard is only
// address space, but a larger one would spread the stacks over more page tables (docs/memory.md).
std::size_t stack_guard_size(std::size_t size) noexcept;

// Makes the guard below `low` of each stack of a list (through `next`); sets `canary`. Always succeeds, with a canary
// if the other kinds fail. Any thread.
void place_stack_guards(stack* list) noexcept;

// Whether the canary of `stack`, which has one, is unchanged.
bool stack_canary_intact(const stack& stack) noexcept;

// The system's page size.
std::size_t page_size() noexcept;

}  // namespace ulexite::detail
