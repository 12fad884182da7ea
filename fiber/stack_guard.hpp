#pragma once

// What lies below a stack so that an overflow cannot go unnoticed. Three kinds, tried in this order for each stack:
//   installed   MADV_GUARD_INSTALL (Linux 6.13): faults when touched, costs no memory map, 0.3 us once.
//   protected_  mprotect(PROT_NONE): faults when touched, but costs two memory maps, of which a process has 65,530 by
//               default (vm.max_map_count). So at most a quarter of these maps becomes guards.
//   canary      words whose change is found when the stack is given back: late, and only if they were hit. It costs a
//               page of memory. Comes with one warning for the process.
//
// For tests and for machines in trouble, read on the first use in a process:
//   ULEXITE_STACK_GUARDS=install|mprotect|canary   the kind to begin with (the later ones still follow when it fails)
//   ULEXITE_STACK_GUARD_BUDGET=n                   guards by mprotect, at most

#include <ulexite/fiber/stack.hpp>

#include <cstddef>

namespace ulexite::detail {

// Bytes of guard below a stack of `size` bytes: a quarter of it, at least 64 KiB and at most 1 MiB. A frame that skips
// it must be larger than that, and compiled without -fstack-clash-protection, which probes each page. It is address
// space alone; but more of it would spread the stacks over more page tables (docs/memory.md).
std::size_t stack_guard_size(std::size_t size) noexcept;

// Makes the guard below `low` of each stack of a list (through `next`); sets `canary`. Always succeeds, by a canary if
// all else fails. Any thread.
void place_stack_guards(stack* list) noexcept;

// False when the canary of `stack`, which has one, was overwritten.
bool stack_canary_intact(const stack& stack) noexcept;

// The system's page size.
std::size_t page_size() noexcept;

}  // namespace ulexite::detail
