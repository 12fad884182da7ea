#pragma once

// Programs that this one starts.

#include <ulexite/os/pipe.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ulexite {

// One of the standard streams of a started program: that of this process, /dev/null, a pipe to this process, or a
// descriptor of the caller's, stdio(fd), which stays open here.
class stdio {
 public:
  // The kinds of a stream.
  enum kind : std::uint8_t {
    inherit,     // that of this process
    null,        // /dev/null
    pipe,        // a pipe to this process
    descriptor,  // a descriptor of the caller's
  };

  // A stream of that kind.
  constexpr stdio(kind what = inherit) noexcept : kind_(what) {}
  // The caller's descriptor, which stays open here.
  explicit constexpr stdio(int fd) noexcept : kind_(descriptor), fd_(fd) {}

  // Its kind.
  [[nodiscard]] constexpr kind what() const noexcept { return kind_; }
  // The descriptor; -1 for the other kinds.
  [[nodiscard]] constexpr int fd() const noexcept { return fd_; }

 private:
  kind kind_;
  int fd_ = -1;
};

// What to start, and how.
struct process_options {
  std::vector<std::string> arguments;  // the first is the program: a path, or a name to look for along PATH
  std::optional<std::vector<std::string>> environment{};  // of "NAME=value"; none: that of this process
  std::filesystem::path working_directory{};              // empty: that of this process; else program paths begin there
  stdio in{};                                             // standard input
  stdio out{};                                            // standard output
  stdio err{};                                            // standard error
};

// How a process ended.
struct exit_status {
  int code = 0;    // what it returned, if no signal ended it
  int signal = 0;  // that ended it, or 0

  // Whether the program returned 0.
  [[nodiscard]] bool success() const noexcept { return code == 0 && signal == 0; }
  friend bool operator==(const exit_status&, const exit_status&) = default;
};

// "exit code 1", "signal 9 (SIGKILL)".
[[nodiscard]] std::string to_string(exit_status status);

// A started program. Waits use a pidfd and no SIGCHLD, but the action of SIGCHLD must not be SIG_IGN; without a pidfd
// they check every 10 ms. Movable while it is not in use; a moved-from process can only be assigned to and destroyed.
//
// The program begins with no signal blocked and with every signal's default action. It has no descriptors except the
// three standard streams: all others are closed, whatever their flags.
class process {
 public:
  // Starts the program by posix_spawn. It copies no page tables, however large this process is, and reports if the
  // program could not be executed. It suspends its thread until then, so it runs on a thread that may block
  // (ulexite::blocking): a cancellation point before that. Throws std::system_error naming the program (and the working
  // directory) if there is no such program, it may not be executed, or the machine refuses. Throws it with
  // invalid_argument, naming the text, if a text contains a NUL; usage_error without arguments.
  explicit process(const process_options& options);
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;  // ends the former one as the destructor does
  // Kills the program with SIGKILL, unless a wait has seen its end, and reaps it: waits for its death under a shield.
  // Programs that it has started are not killed.
  ~process();

  // This process's end of its standard input, closed unless it is a pipe. Close it to have the program read the end.
  [[nodiscard]] pipe_writer& in() noexcept { return in_; }
  // This process's end of its standard output, closed unless it is a pipe.
  [[nodiscard]] pipe_reader& out() noexcept { return out_; }
  // This process's end of its standard error, closed unless it is a pipe.
  [[nodiscard]] pipe_reader& err() noexcept { return err_; }

  // Its number. After a wait has seen its end, another process may get the number.
  [[nodiscard]] pid_t id() const noexcept;

  // Waits for the end of the program, and reaps it. May be called again: returns the same. A cancellation point; a
  // cancelled wait does not end the program. Any number of fibers and threads. It does not read or close the pipes: a
  // program with output that is not read waits for ever when the pipe is full. Throws std::system_error if other code
  // has reaped it.
  exit_status wait() { return *wait_until_ns(detail::no_deadline); }
  // The same, but no longer than that. Nothing when that was over first.
  template <class Rep, class Period>
  [[nodiscard]] std::optional<exit_status> wait_for(std::chrono::duration<Rep, Period> time) {
    return wait_until_ns(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  [[nodiscard]] std::optional<exit_status> wait_until(std::chrono::time_point<Clock, Duration> time) {
    return wait_until_ns(detail::deadline_at(time));
  }

  // Sends the program a signal (of <csignal>). False if a wait has seen its end: then no process gets the signal. Never
  // waits. Any thread. Throws std::system_error for a number that is not a signal, or a process that may not be
  // signalled (set-user-ID).
  bool kill(int signal);

 private:
  class child;
  std::optional<exit_status> wait_until_ns(std::int64_t deadline);

  std::unique_ptr<child> child_;
  pipe_writer in_;
  pipe_reader out_, err_;
};

// The result of output_of.
struct process_output {
  exit_status status;  // how the program ended
  std::string out;     // what it wrote to its standard output
  std::string err;     // and to its standard error, if options.err was stdio::pipe
};

// Runs a program to its end and returns its standard output; options.out is ignored. `input` is its standard input; if
// `input` is empty, options.in counts. The status reports a failure of the program. If a program that it has started
// keeps the output open, output_of waits for that program too.
//
// In fibers only. A cancellation point: a cancelled program is killed and reaped. Throws as the constructor of process.
[[nodiscard]] process_output output_of(process_options options, std::string_view input = {});

}  // namespace ulexite
