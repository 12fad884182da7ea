#pragma once

#include <ulexite/base/standard.hpp>

#include <cstddef>

namespace ulexite {

// Options of runtime::dump and runtime::dump_json.
struct dump_options {
  bool backtraces = true;        // of the fibers that wait or could run; some microseconds each
  std::size_t max_groups = 500;  // fibers at the same place are one group; the others are counted
  // Of the workers that have not switched for a second, and of the eight oldest blocking calls, and waits of plain
  // threads, of more than a second. These threads take them as for runtime_options::stuck_after, so a system call of
  // theirs may return early.
  bool stuck_backtraces = false;
};

}  // namespace ulexite
