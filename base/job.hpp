#pragma once

#include <cstddef>

namespace ulexite {

// A piece of work that runs to completion on a worker. Intrusive: the caller owns the memory, which must stay until
// `run` was entered; the runtime allocates nothing. `run` must not wait for anything.
struct job {
  job* next = nullptr;
  void (*run)(job*) noexcept = nullptr;
};

}  // namespace ulexite
