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

// While it lives, the given signals do not do to the process what they did before, ignored ones too, but come here.
// Several sets for one signal each get it; when the last has gone, what was set before is set again, for what is sent
// from then on. Meanwhile nobody else may set an action for them. To be made and destroyed by any fiber or thread, in
// or outside a runtime.
//
//   signal_set stop{SIGINT, SIGTERM};
//   select(on_receive(stop.channel(), [&](std::optional<int> signal) { ... }), ...);
//
// A signal that comes again before it was sent on comes once, as the system does it too; none is lost. At least one
// thread must not block it: it stays pending otherwise. System calls of whatever thread it interrupts go on
// (SA_RESTART), but for those that never do, as poll and nanosleep. A started program does not inherit it.
class signal_set {
 public:
  // Never waits. Throws usage_error for a number that is no signal, or whose fault would come again and again (SIGSEGV,
  // SIGBUS, SIGFPE, SIGILL); std::system_error naming the signal when the system refuses it (SIGKILL, SIGSTOP), or
  // gives no thread.
  explicit signal_set(std::initializer_list<int> signals) : signal_set(std::vector<int>(signals)) {}
  explicit signal_set(std::vector<int> signals);
  signal_set(const signal_set&) = delete;
  signal_set& operator=(const signal_set&) = delete;
  // Nobody may wait for it any more.
  ~signal_set();

  // Waits for the next signal and returns its number. A cancellation point.
  int receive() { return channel_.receive().value(); }

  // Where the numbers come, for a select or a time limit. It is unbounded, and never closed: it is not yours to close.
  [[nodiscard]] ulexite::channel<int>& channel() & noexcept { return channel_; }

 private:
  friend detail::signal_hub;

  const std::vector<int> signals_;
  ulexite::channel<int> channel_{unbounded};
};

}  // namespace ulexite
