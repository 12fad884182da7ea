#pragma once

#include <ulexite/net/socket/fd_wait.hpp>

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <cerrno>

namespace ulexite::detail {

// Makes a system call that may raise SIGPIPE in this thread. Returns the call's result or -errno. Blocks the signal
// during the call, and removes it if it was raised. To ignore the signal would affect the whole process, and the
// programs that it starts.
template <class Call>
ssize_t write_without_sigpipe(Call&& call) noexcept {
  sigset_t broken_pipe, before;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = result_or_errno(call());
  if (written == -EPIPE) {
    const timespec at_once{};
    while (result_or_errno(::sigtimedwait(&broken_pipe, nullptr, &at_once)) == -EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return written;
}

}  // namespace ulexite::detail
