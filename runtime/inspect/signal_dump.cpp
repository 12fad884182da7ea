#include <ulexite/base/panic.hpp>
#include <ulexite/base/standard_descriptors.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/signal_dump.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <ostream>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

// Async-signal-safe: lock-free.
std::atomic<int> bell{-1};

void ring(int) noexcept {
  const int error = errno;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell.load(std::memory_order_relaxed), &one, sizeof one));  // set before the handler was
  errno = error;
}

// The state of the process for signal dumps.
//
// State
//   over     the thread must end. Written with `turn` held, read by that thread.
//   threads  how many threads there are for this: one or none. A hint.
struct shared {
  std::mutex turn;  // one runtime registers or leaves at a time
  std::mutex list;  // guards the runtimes; held over a dump
  std::vector<runtime_state*> runtimes;
  std::thread thread;
  std::atomic<bool> over{false};
  std::atomic<std::size_t> threads{0};
  int signal = 0;
  struct sigaction before{};
};

shared& all() noexcept {
  static shared* const one = new shared;  // outlives static runtimes
  return *one;
}

bool wants_json() noexcept {
  const char* const name = std::getenv("ULEXITE_DUMP");
  return name && std::string_view(name).ends_with(".json");
}

void write_all_dumps() try {
  const std::lock_guard lock(all().list);
  for (runtime_state* const each : all().runtimes) {
    report_plainly([&](std::ostream& text) {
      if (wants_json()) {
        write_json(text, collect(*each, {}));
      } else {
        write_text(text, collect(*each, {}));
      }
    });
  }
} catch (const std::exception& refused) {
  warn("no dump could be written: %s", refused.what());
}

void thread_main() noexcept {
  const int fd = bell.load(std::memory_order_relaxed);  // set before the thread was made
  for (std::uint64_t rings; ::read(fd, &rings, sizeof rings) > 0 || errno == EINTR;) {
    if (all().over.load(std::memory_order_acquire)) return;  // pairs with stop's store
    write_all_dumps();
  }
}

// The new thread must not handle any signal of the process.
std::thread start_thread() {
  sigset_t every, before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  try {
    std::thread made(thread_main);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made;
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

int make_bell() {
  const standard_descriptors_taken taken;
  return ::eventfd(0, EFD_CLOEXEC);
}

void start(int signal) {
  // Never closed, because a handler may still write to it.
  const int made_before = bell.load(std::memory_order_relaxed);  // `turn` held
  const int fd = made_before >= 0 ? made_before : make_bell();
  if (fd < 0) throw std::system_error(errno, std::system_category(), "ulexite: an eventfd for dump_signal");
  bell.store(fd, std::memory_order_relaxed);  // published by the thread's start and by sigaction
  struct sigaction handler{};
  handler.sa_handler = ring;
  handler.sa_flags = SA_RESTART | SA_ONSTACK;  // a fiber's stack may be near its end
  if (::sigaction(signal, &handler, &all().before) != 0) {
    throw std::system_error(errno, std::system_category(), "ulexite: dump_signal " + std::to_string(signal));
  }
  all().signal = signal;
  all().over.store(false, std::memory_order_relaxed);  // published by the thread's start
  try {
    all().thread = start_thread();
  } catch (...) {
    ::sigaction(signal, &all().before, nullptr);
    throw;
  }
  all().threads.store(1, std::memory_order_relaxed);  // hint
}

void stop() noexcept {
  struct sigaction now{};  // the program may have set a handler since then
  if (::sigaction(all().signal, nullptr, &now) == 0 && now.sa_handler == ring)
    ::sigaction(all().signal, &all().before, nullptr);
  all().over.store(true, std::memory_order_release);  // pairs with thread_main's load
  ring(0);
  all().thread.join();
  all().threads.store(0, std::memory_order_relaxed);  // hint
}

// Writes up to the first error.
void write_whole(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

int signal_dump::wanted(int option) noexcept {
  if (option != 0) return option;
  return std::getenv("ULEXITE_DUMP") ? SIGQUIT : 0;
}

std::size_t signal_dump::threads() noexcept { return all().threads.load(std::memory_order_relaxed); }  // hint

signal_dump::signal_dump(runtime_state& home, int signal) : home_(home) {
  const std::lock_guard turn(all().turn);
  if (!all().thread.joinable()) start(signal);
  const std::lock_guard lock(all().list);
  all().runtimes.push_back(&home_);
}

signal_dump::~signal_dump() {
  const std::lock_guard turn(all().turn);
  {
    const std::lock_guard lock(all().list);
    std::erase(all().runtimes, &home_);
    if (!all().runtimes.empty()) return;
  }
  stop();
}

void write_report(std::string_view text) noexcept {
  int fd = STDERR_FILENO;
  if (const char* const name = std::getenv("ULEXITE_DUMP"); name && *name) {
    fd = ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
      warn("ULEXITE_DUMP: %s cannot be written (error %d): the report goes to stderr", name, errno);
      fd = STDERR_FILENO;
    }
  }
  write_whole(fd, text);
  if (fd != STDERR_FILENO) ::close(fd);
}

}  // namespace ulexite::detail
