#pragma once

// Signals of the process as values on a channel.
//
// signalfd is not used. It requires the signals to be blocked in every thread, also in earlier threads and in those of
// other libraries. And if several descriptors take one signal, only one of them receives it. Instead a handler notes
// the signal. A thread of the library then sends it to all sets that have it. The thread starts with the first set and
// stays until the process ends. This works for any threads and runtimes.

#include <ulexite/sync/channel.hpp>

#include <initializer_list>
#include <vector>

namespace ulexite::detail {
class signal_hub;
}

namespace ulexite::os {

// Delivers signals to a channel. While it exists, its signals have no other effect, even if they were ignored before.
// If several sets have a signal, each receives it. When the last set with a signal is destroyed, the signal's previous
// action is restored. Until then the program must not set an action for the signal. Any fiber or thread may make and
// destroy a set, inside or outside a runtime.
//
//   signal_set stop{SIGINT, SIGTERM};
//   select(on_receive(stop.channel(), [&](std::optional<int> signal) { ... }), ...);
//
// Equal signals that arrive before the first was forwarded count as one, as usual for signals. No other signal is lost,
// with one exception. The destructor of the last set ignores the signal for a moment (not SIGCHLD). One that arrives
// then is dropped, even if the restored action would handle it. At least one thread must not block the signal,
// otherwise it stays pending. Interrupted system calls continue (SA_RESTART), except calls that never do, such as poll
// and nanosleep. A started program does not inherit the set.
// After fork the child has the previous actions, and the set receives nothing there; sets that the child makes do.
class signal_set {
 public:
  // Begins to receive these signals. Never waits. Throws usage_error for a number that is not a signal, and for signals
  // of faults that would repeat (SIGSEGV, SIGBUS, SIGFPE, SIGILL). Throws std::system_error that names the signal if
  // the system refuses it (SIGKILL, SIGSTOP), or refuses a thread.
  explicit signal_set(std::initializer_list<int> signals) : signal_set(std::vector<int>(signals)) {}
  explicit signal_set(std::vector<int> signals);
  explicit signal_set(int signal) : signal_set({signal}) {}
  signal_set(const signal_set&) = delete;
  signal_set& operator=(const signal_set&) = delete;
  // Restores the previous actions. No fiber or thread may be waiting.
  ~signal_set();

  // Waits for the next signal and returns its number. A cancellation point.
  int receive() { return channel_.receive().value(); }

  // The channel of the numbers. Use it in a select or with a time limit. It is unbounded, and never closed: do not
  // close it.
  [[nodiscard]] ulexite::channel<int>& channel() & noexcept { return channel_; }

 private:
  friend detail::signal_hub;

  const std::vector<int> signals_;
  ulexite::channel<int> channel_{unbounded};
};

}  // namespace ulexite::os
