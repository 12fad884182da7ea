#include <ulexite/base/error.hpp>
#include <ulexite/base/standard_descriptors.hpp>
#include <ulexite/net/fd_wait.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/socket_calls.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/os/process_start.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

namespace ulexite {
namespace {

constexpr std::int64_t time_between_looks = 10'000'000;  // nanoseconds, without a pidfd

exit_status status_of(const siginfo_t& end) noexcept {
  if (end.si_code == CLD_EXITED) return {.code = end.si_status};
  return {.signal = end.si_status};
}

int open_pidfd(pid_t number) noexcept {
  const detail::standard_descriptors_taken taken;
  return static_cast<int>(::syscall(SYS_pidfd_open, number, 0));
}

}  // namespace

std::string to_string(exit_status status) {
  if (status.signal == 0) return "exit code " + std::to_string(status.code);
  const char* const name = ::sigabbrev_np(status.signal);
  return "signal " + std::to_string(status.signal) + (name ? std::string(" (SIG") + name + ")" : std::string());
}

// A process and its end. The lock separates reaping from signalling, because the process has its number only until it
// is reaped. The pidfd stays open after that, because others may wait on it.
class process::child {
 public:
  explicit child(pid_t number) noexcept : pid(number), pidfd_(open_pidfd(number)) {}
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    end();
    if (pidfd_ >= 0) ::close(pidfd_);
  }

  std::optional<exit_status> wait_until(std::int64_t deadline) {
    detail::throw_if_stopped();
    for (;;) {
      if (const auto status = reap()) return status;
      if (deadline != detail::no_deadline && deadline <= detail::now_ns()) return std::nullopt;
      wait_for_news(deadline);
    }
  }

  bool kill(int signal) {
    const std::lock_guard lock(mutex_);
    if (status_) return false;
    const int result = send(signal);
    if (result == 0) return true;
    throw std::system_error(-result, std::system_category(),
                            "ulexite: sending signal " + std::to_string(signal) + " to process " + std::to_string(pid));
  }

  const pid_t pid;

 private:
  // The status, if it has ended.
  std::optional<exit_status> reap() {
    const std::lock_guard lock(mutex_);
    if (status_) return status_;
    siginfo_t end{};
    const int result = detail::or_errno(::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG));
    if (result != 0 && result != -EINTR)
      throw std::system_error(-result, std::system_category(), "ulexite: waiting for process " + std::to_string(pid));
    if (result == 0 && end.si_pid == pid) status_ = status_of(end);
    return status_;
  }

  // Sends a signal to this process only: other code may have reaped it, and another process may have its number.
  int send(int signal) const noexcept {
    if (pidfd_ >= 0)
      return static_cast<int>(detail::or_errno(::syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0)));
    siginfo_t end{};
    if (detail::or_errno(::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | WNOWAIT)) == -ECHILD)
      return -ESRCH;
    return detail::or_errno(::kill(pid, signal));
  }

  void wait_for_news(std::int64_t deadline) {
    if (pidfd_ >= 0) {
      detail::wait_for_fd(pidfd_, net::interest::read, deadline);
    } else {
      detail::sleep_until(std::min(deadline, detail::now_ns() + time_between_looks));
    }
  }

  void end() noexcept {
    const shield until_dead;
    try {
      if (!reap()) send(SIGKILL);
      while (!reap()) look_again();
    } catch (const std::system_error&) {  // reaped by other code
    }
  }

  // Checks from time to time. Used if the system refuses to watch the pidfd.
  void look_again() {
    try {
      wait_for_news(detail::no_deadline);
    } catch (const std::system_error&) {
      detail::sleep_until(detail::now_ns() + time_between_looks);
    }
  }

  const int pidfd_;  // negative: none
  std::mutex mutex_;
  std::optional<exit_status> status_;
};

process::process(const process_options& options) {
  if (options.arguments.empty()) throw usage_error("a process without arguments: the first names the program");
  detail::started_process started = blocking([&] { return detail::start_process(options); });
  child_ = std::make_unique<child>(started.pid);
  in_ = std::move(started.in);
  out_ = std::move(started.out);
  err_ = std::move(started.err);
}

process::process(process&& other) noexcept = default;
process& process::operator=(process&& other) noexcept = default;
process::~process() = default;

pid_t process::id() const noexcept { return child_->pid; }

std::optional<exit_status> process::wait_until_ns(std::int64_t deadline) { return child_->wait_until(deadline); }

bool process::kill(int signal) { return child_->kill(signal); }

process_output output_of(process_options options, std::string_view input) {
  options.out = stdio::pipe;
  if (!input.empty()) options.in = stdio::pipe;
  process program(options);
  process_output result;
  scope([&](task_group& group) {
    group.spawn([&] {
      std::error_code error;
      if (!input.empty()) program.in().write(input, error);
      program.in().close();
      // A program need not read to the end.
      if (error && error != std::errc::broken_pipe) detail::fail(error, "ulexite: writing to a program");
    });
    if (options.err.what() == stdio::pipe) group.spawn([&] { result.err = program.err().read_all(); });
    result.out = program.out().read_all();
  });
  result.status = program.wait();
  return result;
}

}  // namespace ulexite
