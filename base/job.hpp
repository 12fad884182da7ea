#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite {

// A piece of work that runs to completion on a worker, on a stack of the runtime's stack_size. Intrusive: the caller
// owns the memory, which must stay until `run` was entered, and may schedule it again only then; the runtime allocates
// nothing. `run` must not wait for anything.
struct job {
  job* next = nullptr;                   // the runtime's, while the job is queued
  void (*run)(job*) noexcept = nullptr;  // called once by a worker, with the job
};

}  // namespace ulexite
