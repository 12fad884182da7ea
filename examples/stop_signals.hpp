#pragma once

// Lets a fiber wait for SIGINT and SIGTERM. The examples share it. From then on SIGPIPE is ignored. If the reader of a
// log or of standard output has closed it, the write fails, but the server continues.

#include <ulexite/os/signal_set.hpp>

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

namespace examples {

class stop_signals {
 public:
  stop_signals() : set_(std::in_place, std::vector{SIGINT, SIGTERM}) { std::signal(SIGPIPE, SIG_IGN); }

  // Waits for the first of them and returns its number. One that comes after that ends the process at once. A
  // cancellation point.
  int wait() {
    const int first = set_->receive();
    release();
    return first;
  }

  // From now on each of them ends the process at once. No fiber may be waiting.
  void release() {
    set_.reset();
    for (const int each : {SIGINT, SIGTERM}) std::signal(each, SIG_DFL);
  }

  // For a program that handles more than the first.
  [[nodiscard]] ulexite::channel<int>& channel() { return set_->channel(); }

 private:
  std::optional<ulexite::os::signal_set> set_;
};

inline const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace examples
