// Pairings
//   A  the handler sets a signal's flag, release  ->  the sender takes it, acquire. A signal that arrives
//      later sets the flag again. The semaphore orders the rest.

#include <ulexite/base/error.hpp>
#include <ulexite/base/signals.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/os/signal_set.hpp>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace ulexite::detail {
namespace {

using os::signal_set;

constexpr std::size_t signal_numbers = _NSIG;  // one more than the highest

// The data of the handler, which is never destroyed.
std::array<std::atomic<bool>, signal_numbers> came;
static_assert(std::atomic<bool>::is_always_lock_free);
sem_t something_came;

extern "C" void ulexite_note_signal(int number) {
  const int error = errno;
  came[static_cast<std::size_t>(number)].store(true, std::memory_order_release);  // A
  ::sem_post(&something_came);
  errno = error;
}

std::string name_of(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name ? std::string("SIG") + name : std::to_string(number);
}

void check(int number) {
  const std::string which = "a signal_set of " + name_of(number);
  if (number <= 0 || static_cast<std::size_t>(number) >= signal_numbers)
    throw usage_error(which + ": there is no such signal");
  if (is_fault(number)) throw usage_error(which + ": what caused it would only cause it again");
}

}  // namespace

// The sets of the process, and the thread that sends to them. Never destroyed: the thread lives as long as the process.
class signal_hub {
 public:
  static signal_hub& get() {
    static signal_hub& only = *new signal_hub;
    return only;
  }

  void add(signal_set& set) {
    const std::lock_guard lock(mutex_);
    start_thread();
    sets_.push_back(&set);
    std::size_t caught = 0;
    try {
      for (; caught < set.signals_.size(); ++caught) begin(set.signals_[caught]);
    } catch (...) {
      while (caught > 0) end(set.signals_[--caught]);
      sets_.pop_back();
      throw;
    }
  }

  void remove(signal_set& set) noexcept {
    const std::lock_guard lock(mutex_);
    if (std::erase(sets_, &set) == 0) return;  // a set of the parent, in a forked child
    for (const int number : set.signals_) end(number);
  }

 private:
  struct action {
    std::size_t users = 0;
    struct sigaction before{};
  };

  signal_hub() {
    ::sem_init(&something_came, 0, 0);
    const int refused =
        ::pthread_atfork([] { get().before_fork(); }, [] { get().after_fork(); }, [] { get().after_fork_in_child(); });
    if (refused != 0) throw std::system_error(refused, std::system_category(), "ulexite: handlers of fork");
  }

  // A forked child has no thread that sends. So it has no sets, and the actions that were before them; its own sets
  // start anew. Until then all signals are blocked, because one that the handler takes would be lost.
  void before_fork() noexcept {
    mutex_.lock();
    mask_ = block_all_signals();
  }
  void after_fork() noexcept {
    set_blocked_signals(mask_);
    mutex_.unlock();
  }
  void after_fork_in_child() noexcept {
    for (std::size_t number = 1; number < signal_numbers; ++number) {
      came[number].store(false, std::memory_order_relaxed);  // no other thread
      if (std::exchange(actions_[number].users, 0) > 0)
        restore_action(static_cast<int>(number), ulexite_note_signal, actions_[number].before);
    }
    sets_.clear();
    started_ = false;
    ::sem_init(&something_came, 0, 0);  // the parent's thread counted as waiting
    after_fork();
  }

  // Mutex held. The thread blocks only the signals that the caller blocks. A send may start a worker, which inherits
  // this mask.
  void start_thread() {
    if (started_) return;
    std::thread([this] { send_for_ever(); }).detach();
    started_ = true;
  }

  // Mutex held. The handler runs on the alternative stack if the thread has one, as workers have, because a fiber's
  // stack may be small.
  void begin(int number) {
    action& mine = actions_[static_cast<std::size_t>(number)];
    struct sigaction handler{};
    handler.sa_handler = ulexite_note_signal;
    handler.sa_flags = SA_RESTART | SA_ONSTACK;
    if (mine.users == 0) {
      // A signal that arrived for an earlier set, and was not sent, is not for this set.
      came[static_cast<std::size_t>(number)].store(false, std::memory_order_relaxed);  // a hint to the sender
      if (::sigaction(number, &handler, &mine.before) != 0)
        throw std::system_error(last_errno(), std::system_category(), "ulexite: a signal_set of " + name_of(number));
    }
    ++mine.users;
  }

  // Mutex held. A pending signal must not meet the old action, which may end the process. So the signal is ignored for
  // a moment, which drops pending ones. (Ignoring SIGCHLD would drop the zombies too.)
  void end(int number) noexcept {
    action& mine = actions_[static_cast<std::size_t>(number)];
    if (--mine.users > 0) return;
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    if (number != SIGCHLD) ::sigaction(number, &ignore, nullptr);
    ::sigaction(number, &mine.before, nullptr);
  }

  void send_for_ever() noexcept {
    for (;;) {
      if (::sem_wait(&something_came) != 0) continue;  // EINTR
      const std::lock_guard lock(mutex_);
      for (std::size_t number = 1; number < signal_numbers; ++number)
        if (came[number].exchange(false, std::memory_order_acquire)) send(static_cast<int>(number));  // A
    }
  }

  // Mutex held. A send to an unbounded channel never waits.
  void send(int number) noexcept {
    for (signal_set* const each : sets_)
      if (std::ranges::count(each->signals_, number) > 0) send(number, each->channel());
  }
  static void send(int number, channel<int>& to) noexcept {
    for (;;) try {
        (void)to.try_send(number);
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
  }

  std::mutex mutex_;  // guards the rest. Its holder never waits for a fiber
  bool started_ = false;
  std::vector<signal_set*> sets_;
  std::array<action, signal_numbers> actions_;
  sigset_t mask_{};  // of the thread that forks
};

}  // namespace ulexite::detail

namespace ulexite::os {

signal_set::signal_set(std::vector<int> signals) : signals_(std::move(signals)) {
  for (const int signal : signals_) detail::check(signal);
  detail::signal_hub::get().add(*this);
}

signal_set::~signal_set() { detail::signal_hub::get().remove(*this); }

}  // namespace ulexite::os
