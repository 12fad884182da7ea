#include <ulexite/base/error.hpp>
#include <ulexite/base/standard_descriptors.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/os/calls/process_start.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fcntl.h>
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

namespace ulexite::os {
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
// is reaped. The pidfd stays open after that, because others may wait on it. A process with a group of its own is
// reaped only by the destructor, because its number is the group's: an empty group's number may become another group's.
class process::child {
 public:
  // Starts it, when there is room for what is kept of it.
  child(const process_options& options, detail::started_process& started)
      : pid((started = blocking([&] { return detail::start_process(options); })).pid),
        own_group_(options.own_group),
        pidfd_(open_pidfd(pid)) {}
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
    fail(result, "sending signal " + std::to_string(signal) + " to process");
  }

  void kill_group(int signal) {
    if (!own_group_)
      throw usage_error("process::kill_group: process " + std::to_string(pid) + " was started without own_group");
    const std::lock_guard lock(mutex_);
    if (const int result = send_to_group(signal); result != 0)
      fail(result, "sending signal " + std::to_string(signal) + " to the group of process");
  }

  const pid_t pid;

 private:
  [[noreturn]] void fail(int result, const std::string& doing) const {
    throw std::system_error(-result, std::system_category(), "ulexite: " + doing + " " + std::to_string(pid));
  }

  // waitid(2) of this process, without a wait. Returns -errno.
  int look(siginfo_t& end, int options) const noexcept {
    return detail::result_or_errno(::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | options));
  }

  // The status, if it has ended.
  std::optional<exit_status> reap() {
    const std::lock_guard lock(mutex_);
    if (status_) return status_;
    siginfo_t end{};
    const int result = look(end, own_group_ ? WNOWAIT : 0);
    if (result != 0 && result != -EINTR) fail(result, "waiting for process");
    if (result == 0 && end.si_pid == pid) status_ = status_of(end);
    return status_;
  }

  // Sends a signal to this process only: other code may have reaped it, and another process may have its number.
  int send(int signal) const noexcept {
    if (pidfd_ >= 0)
      return static_cast<int>(detail::result_or_errno(::syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0)));
    siginfo_t end{};
    if (look(end, WNOWAIT) == -ECHILD) return -ESRCH;
    return detail::result_or_errno(::kill(pid, signal));
  }

  // Sends a signal to all processes of the group, whose number is this one's.
  int send_to_group(int signal) const noexcept {
    siginfo_t end{};
    if (look(end, WNOWAIT) == -ECHILD) return -ESRCH;
    return detail::result_or_errno(::kill(-pid, signal));
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
      if (own_group_) send_to_group(SIGKILL);
      if (!reap()) send(SIGKILL);
      while (!reap()) look_again();
      siginfo_t end{};
      if (own_group_) look(end, 0);
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

  const bool own_group_;
  const int pidfd_;  // negative: none
  std::mutex mutex_;
  std::optional<exit_status> status_;
};

process::process(const process_options& options) {
  if (options.arguments.empty()) throw usage_error("a process without arguments: the first names the program");
  detail::started_process started;
  child_ = std::make_unique<child>(options, started);
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

void process::kill_group(int signal) { child_->kill_group(signal); }

namespace {

// Reads to the end, or the first `limit` bytes. Returns whether there is more.
bool read_at_most(std::size_t limit, pipe_reader& from, std::string& into, std::error_code& error) {
  constexpr std::size_t room = 65'536;  // as much as a pipe holds
  for (std::size_t done = 0;;) {
    into.resize(done + std::min(room, limit - done) + 1);  // with the first byte that is too much
    const std::size_t got = from.read_some(into.data() + done, into.size() - done, error);
    done += got;
    into.resize(std::min(done, limit));
    if (done > limit || got == 0 || error) return done > limit;
  }
}

// A second descriptor of a pipe, for what a close of the first would lose. None if the process may have no more.
pipe_reader second_of(const pipe_reader& from) {
  const int fd = from.is_open() ? ::fcntl(from.native_handle(), F_DUPFD_CLOEXEC, 0) : -1;
  return fd < 0 ? pipe_reader() : pipe_reader::adopt(fd);
}

// Reads what is there, up to the limit. Never waits.
void read_rest(std::size_t limit, const pipe_reader& from, std::string& into) {
  char part[4096];
  while (into.size() < limit) {
    const ssize_t got = ::read(from.native_handle(), part, std::min(sizeof part, limit - into.size()));
    if (got <= 0) return;
    into.append(part, static_cast<std::size_t>(got));
  }
}

}  // namespace

process_output output_of(process_options options, std::string_view input, std::size_t limit) {
  static_cast<void>(detail::this_runtime_state());  // throws before the program begins
  options.out = stdio::pipe;
  if (!input.empty()) options.in = stdio::pipe;
  process program(options);
  process_output result;
  bool out_cut = false, err_cut = false;
  const bool may_be_cut = limit != std::string::npos && program.err().is_open();
  const pipe_reader out_rest = may_be_cut ? second_of(program.out()) : pipe_reader();
  const pipe_reader err_rest = may_be_cut ? second_of(program.err()) : pipe_reader();
  const auto collect = [&](pipe_reader& from, std::string& into, bool& cut) {
    std::error_code error;
    cut = read_at_most(limit, from, into, error);
    if (cut) {
      options.own_group ? program.kill_group(SIGKILL) : static_cast<void>(program.kill(SIGKILL));
      program.in().close();  // other programs may have the other ends
      program.out().close();
      program.err().close();
    } else if (error && error != std::errc::bad_file_descriptor) {  // which is that close
      detail::fail(error, "ulexite: reading from a program");
    }
  };
  scope([&](task_group& group) {
    group.spawn([&] {
      std::error_code error;
      if (!input.empty()) program.in().write(input, error);
      program.in().close();
      // A program need not read to the end.
      if (error && error != std::errc::broken_pipe && error != std::errc::bad_file_descriptor)
        detail::fail(error, "ulexite: writing to a program");
    });
    if (options.err.what() == stdio::pipe) group.spawn([&] { collect(program.err(), result.err, err_cut); });
    collect(program.out(), result.out, out_cut);
  });
  result.cut = out_cut || err_cut;
  if (result.cut) {
    read_rest(limit, out_rest, result.out);
    read_rest(limit, err_rest, result.err);
  }
  result.status = program.wait();
  return result;
}

}  // namespace ulexite::os
