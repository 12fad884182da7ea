#pragma once

// Signals of the process as values on a channel.
//
// Why not signalfd: it wants the signals blocked in every thread, those that exist already and those of other libraries
// too, and of several descriptors for one signal a single one gets it. So here a handler notes the signal, and a thread
// of the library's own, started with the first set and kept to the end of the process, sends it to all sets that want
// it. This works whatever threads and runtimes there are, or will be.

#include <ulexite/sync/channel.hpp>

#include <initializer_list>
#include <vector>

namespace ulexite {

namespace detail {
class signal_hub;
}

// Delivers signals to a channel. While it exists, its signals have no other effect, even those that were ignored. If
// several sets have a signal, each receives it. When the last of them is destroyed, the previous action is restored for
// later signals. Meanwhile the program must not set an action for them. Any fiber or thread may make and destroy it, in
// or outside a runtime.
//
//   signal_set stop{SIGINT, SIGTERM};
//   select(on_receive(stop.channel(), [&](std::optional<int> signal) { ... }), ...);
//
// Equal signals that arrive before the first was sent on count as one, as usual for the system; none is lost. At least
// one thread must not block the signal, otherwise it stays pending. Interrupted system calls continue (SA_RESTART),
// except those that never do, such as poll and nanosleep. A started program does not inherit the set.
class signal_set {
 public:
  // Begins to receive these signals. Never waits. Throws usage_error for a number that is not a signal, and for signals
  // of faults that would repeat (SIGSEGV, SIGBUS, SIGFPE, SIGILL). Throws std::system_error naming the signal when the
  // system refuses it (SIGKILL, SIGSTOP), or gives no thread.
  explicit signal_set(std::initializer_list<int> signals) : signal_set(std::vector<int>(signals)) {}
  explicit signal_set(std::vector<int> signals);
  explicit signal_set(int signal) : signal_set({signal}) {}
  signal_set(const signal_set&) = delete;
  signal_set& operator=(const signal_set&) = delete;
  // There must be no waiter.
  ~signal_set();

  // Waits for the next signal and returns its number. A cancellation point.
  int receive() { return channel_.receive().value(); }

  // The channel of the numbers, for a select or a time limit. It is unbounded, and never closed: do not close it.
  [[nodiscard]] ulexite::channel<int>& channel() & noexcept { return channel_; }

 private:
  friend detail::signal_hub;

  const std::vector<int> signals_;
  ulexite::channel<int> channel_{unbounded};
};

}  // namespace ulexite
