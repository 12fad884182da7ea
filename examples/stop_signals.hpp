#pragma once

// SIGINT and SIGTERM as something that a fiber waits for. All examples share it.

#include <ulexite/net/io_wait.hpp>

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace examples {

class stop_signals {
 public:
  // Blocks the signals in this thread and in those that it will start: to be made before the runtime.
  stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr))
      throw std::system_error(error, std::system_category(), "blocking the stop signals");
    fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd_ < 0) throw std::system_error(errno, std::system_category(), "making a signalfd");
  }
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;
  ~stop_signals() { ::close(fd_); }

  // Waits for the next of them and returns its number. A cancellation point.
  int wait() {
    signalfd_siginfo info;
    do ulexite::net::wait_readable(fd_);
    while (::read(fd_, &info, sizeof info) != sizeof info);  // another waiter was faster
    return static_cast<int>(info.ssi_signo);
  }

 private:
  int fd_;
};

inline const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace examples
