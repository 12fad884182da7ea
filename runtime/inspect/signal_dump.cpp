#include <ulexite/base/panic.hpp>
#include <ulexite/base/signals.hpp>
#include <ulexite/base/standard_descriptors.hpp>
#include <ulexite/base/write_soon.hpp>
#include <ulexite/runtime/inspect/json.hpp>
#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/signal_dump.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <locale>
#include <memory>
#include <mutex>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

// Async-signal-safe: lock-free.
std::atomic<int> bell{-1};

void pass_on(int signal) noexcept;

void ring(int signal) noexcept {
  const int error = errno;
  const std::uint64_t one = 1;
  const int fd = bell.load(std::memory_order_relaxed);  // set before the handler was
  if (fd >= 0) {
    static_cast<void>(!::write(fd, &one, sizeof one));
  } else {
    pass_on(signal);  // in a forked child a signal_set may have put this handler back
  }
  errno = error;
}

// The state of the process for signal dumps.
//
// State
//   over     the thread must end. Written with `registering` held, read by that thread.
//   threads  how many threads there are for this: one or none. A hint.
struct shared {
  std::mutex registering;  // one runtime registers or leaves at a time
  std::mutex list;         // guards the runtimes; held over a dump
  std::vector<runtime_state*> runtimes;
  std::thread thread;
  std::atomic<bool> over{false};
  std::atomic<std::size_t> threads{0};
  int signal = 0;
  struct sigaction before{};
  sigset_t mask{};  // of the thread that forks
};

shared& all() noexcept {
  static shared* const one = new shared;  // outlives static runtimes
  return *one;
}

void pass_on(int signal) noexcept {
  ::sigaction(signal, &all().before, nullptr);
  ::raise(signal);
}

// The file of the environment; null if there is none.
const char* report_file() noexcept {
  const char* const name = std::getenv("ULEXITE_DUMP");
  return name && *name ? name : nullptr;
}

// Opens it without a wait. A FIFO without a reader is ENXIO.
int open_report_file() noexcept {
  const standard_descriptors_taken none_free;
  return ::open(report_file(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
}

// Where a report goes.
class report_target {
 public:
  report_target() {
    if (!report_file()) return;
    fd_ = open_report_file();
    if (fd_ < 0)
      warn("ULEXITE_DUMP: %s cannot be written (%s): the report goes to stderr", report_file(),
           ::strerrordesc_np(errno));
  }
  ~report_target() {
    if (fd_ >= 0) ::close(fd_);
  }
  report_target(const report_target&) = delete;
  report_target& operator=(const report_target&) = delete;

  // Whether it is a file of which each line is JSON.
  [[nodiscard]] bool is_json() const noexcept { return fd_ >= 0 && std::string_view(report_file()).ends_with(".json"); }
  void write(std::string_view text) const noexcept {
    if (fd_ < 0) return write_to_stderr(text);
    if (!write_soon(fd_, text)) warn("ULEXITE_DUMP: %s does not take all of a report: report cut", report_file());
  }

 private:
  int fd_ = -1;
};

// The text that write(stream) writes, with the numbers of the locale "C".
template <class Write>
std::string plain_text(Write&& write) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  write(text);
  return std::move(text).str();
}

void write_all_dumps() try {
  const std::lock_guard lock(all().list);
  for (runtime_state* const each : all().runtimes) {
    const runtime_report report = collect(*each, {});
    const report_target to;
    to.write(
        plain_text([&](std::ostream& text) { to.is_json() ? write_json(text, report) : write_text(text, report); }));
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
  const sigset_t before = block_all_signals();
  try {
    std::thread made(thread_main);
    set_blocked_signals(before);
    return made;
  } catch (...) {
    set_blocked_signals(before);
    throw;
  }
}

int make_bell() {
  const standard_descriptors_taken taken;
  return ::eventfd(0, EFD_CLOEXEC);
}

// A forked child has no thread that waits for the signal. So it gets the action that was before, and a bell that does
// not ring in its parent; a new runtime there starts anew. Until then all signals are blocked, because one that the
// handler takes would be lost.
void before_fork() noexcept {
  all().registering.lock();
  all().list.lock();
  all().mask = block_all_signals();
}

void after_fork() noexcept {
  set_blocked_signals(all().mask);
  all().list.unlock();
  all().registering.unlock();
}

void after_fork_in_child() noexcept {
  if (all().thread.joinable()) {
    restore_action(all().signal, ring, all().before);
    std::construct_at(&all().thread);  // the thread is the parent's: no join, and no end of the old object
  }
  all().runtimes.clear();
  all().threads.store(0, std::memory_order_relaxed);      // hint
  ::close(bell.exchange(-1, std::memory_order_relaxed));  // no other thread
  after_fork();
}

[[noreturn]] void refuse(int signal, const std::string& why) {
  throw std::invalid_argument("runtime_options::dump_signal is " + std::to_string(signal) + ": " + why);
}

void start(int signal) {
  static const int refused = ::pthread_atfork(before_fork, after_fork, after_fork_in_child);
  if (refused != 0) throw std::system_error(refused, std::system_category(), "ulexite: handlers of fork");
  // Never closed, because a handler may still write to it.
  const int made_before = bell.load(std::memory_order_relaxed);  // `registering` held
  const int fd = made_before >= 0 ? made_before : make_bell();
  if (fd < 0) throw std::system_error(errno, std::system_category(), "ulexite: an eventfd for dump_signal");
  bell.store(fd, std::memory_order_relaxed);  // published by the thread's start and by sigaction
  struct sigaction handler{};
  handler.sa_handler = ring;
  handler.sa_flags = SA_RESTART | SA_ONSTACK;  // a fiber's stack may be near its end
  struct sigaction found{};
  if (::sigaction(signal, &handler, &found) != 0) refuse(signal, ::strerrordesc_np(errno));
  if (found.sa_handler != ring) all().before = found;  // a forked child's signal_set may have put ours back
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
  restore_action(all().signal, ring, all().before);
  all().over.store(true, std::memory_order_release);  // pairs with thread_main's load
  ring(0);
  all().thread.join();
  all().threads.store(0, std::memory_order_relaxed);  // hint
}

}  // namespace

int signal_dump::wanted(int option) noexcept {
  if (option != 0) return option;
  return std::getenv("ULEXITE_DUMP") ? SIGQUIT : 0;
}

std::size_t signal_dump::threads() noexcept { return all().threads.load(std::memory_order_relaxed); }  // hint

signal_dump::signal_dump(runtime_state& rt, int signal) : runtime_(rt) {
  if (is_fault(signal)) refuse(signal, "what caused it would only cause it again");
  if (struct sigaction found{}; signal == SIGKILL || signal == SIGSTOP || ::sigaction(signal, nullptr, &found) != 0)
    refuse(signal, "no signal that a program can handle");
  const std::lock_guard registering(all().registering);
  if (!all().thread.joinable()) start(signal);
  const std::lock_guard lock(all().list);
  all().runtimes.push_back(&runtime_);
}

signal_dump::~signal_dump() {
  const std::lock_guard registering(all().registering);
  {
    const std::lock_guard lock(all().list);
    std::erase(all().runtimes, &runtime_);
    if (!all().runtimes.empty() || !all().thread.joinable()) return;  // in a forked child there may be no thread
  }
  stop();
}

void try_report_file() noexcept {
  static std::atomic<bool> tried{false};
  if (!report_file() || tried.exchange(true, std::memory_order_relaxed)) return;  // once is enough
  struct stat found{};
  if (::stat(report_file(), &found) == 0 && !S_ISREG(found.st_mode)) return;  // a FIFO's reader would see its end
  const int fd = open_report_file();
  if (fd >= 0) {
    ::close(fd);
  } else {
    warn("ULEXITE_DUMP: %s cannot be written (%s): reports go to stderr", report_file(), ::strerrordesc_np(errno));
  }
}

void write_report(const report_writer& write) {
  const report_target to;
  const std::string words = plain_text(write);
  if (!to.is_json()) return to.write(words);
  to.write(plain_text([&](std::ostream& text) {
    json(text, '{', '}').string("report", std::string_view(words).substr(0, words.find_last_not_of('\n') + 1));
    text << '\n';
  }));
}

}  // namespace ulexite::detail
