#pragma once

// SIGINT and SIGTERM as something that a fiber waits for. The examples share it. SIGPIPE is ignored from then on: when
// the reader of a log or of standard output has gone, the write fails, and that must not end a server.

#include <ulexite/os/signal_set.hpp>

#include <csignal>

namespace examples {

class stop_signals : public ulexite::signal_set {
 public:
  stop_signals() : signal_set{SIGINT, SIGTERM} { std::signal(SIGPIPE, SIG_IGN); }

  // Waits for the next of them and returns its number. A cancellation point.
  int wait() { return receive(); }
};

inline const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace examples
