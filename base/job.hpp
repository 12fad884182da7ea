#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite {

// A piece of work that runs to its end on a worker, on a stack of the runtime's stack_size. The caller owns its memory,
// so the runtime allocates nothing. The job must stay valid until `run` has been entered; from then on it may be freed
// or scheduled again. `run` must not wait.
struct job {
  job* next = nullptr;                   // the runtime's, while the job is queued
  void (*run)(job*) noexcept = nullptr;  // called once by a worker, with the job
};

}  // namespace ulexite
