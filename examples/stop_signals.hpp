#pragma once

// Lets a fiber wait for SIGINT and SIGTERM. The examples share it. From then on SIGPIPE is ignored. If the reader of a
// log or of standard output has closed it, the write fails, but the server continues.

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
