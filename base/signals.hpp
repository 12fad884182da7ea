#pragma once

#include <ulexite/base/standard.hpp>

#include <signal.h>

namespace ulexite::detail {

// Blocks all signals of the calling thread, and returns what it had blocked before.
inline sigset_t block_all_signals() noexcept {
  sigset_t every, before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  return before;
}
inline void set_blocked_signals(const sigset_t& blocked) noexcept { ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr); }

// Whether the signal is of a fault, which comes again if a handler returns.
constexpr bool is_fault(int signal) noexcept {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
}

// Puts the action from before back, unless the program has replaced our handler since then. Async-signal-safe.
inline void restore_action(int signal, void (*ours)(int), const struct sigaction& before) noexcept {
  struct sigaction now{};
  if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == ours) ::sigaction(signal, &before, nullptr);
}

}  // namespace ulexite::detail
