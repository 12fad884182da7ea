#pragma once

// How a program is started.

#include <ulexite/os/process.hpp>

namespace ulexite::detail {

struct started_process {
  pid_t pid = -1;
  os::pipe_writer in;
  os::pipe_reader out, err;
};

// Starts the program. Blocks the thread until the program executes. Throws as the constructor of process.
started_process start_process(const os::process_options& options);

}  // namespace ulexite::detail
