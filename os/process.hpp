#pragma once

// Programs that this one starts.

#include <ulexite/os/pipe.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ulexite::os {

// The choice of a standard stream for a started program. It is this process's stream, /dev/null, a pipe to this
// process, the program's standard output (for its standard error), or stdio(fd): a descriptor of the caller, which
// stays open here.
class stdio {
 public:
  // The kinds of a stream.
  enum kind : std::uint8_t {
    inherit,     // the stream of this process
    null,        // /dev/null
    pipe,        // a pipe to this process
    descriptor,  // a descriptor of the caller
    as_out,      // for standard error: the same as standard output, as 2>&1 of a shell
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

// The program to start, and its surroundings.
struct process_options {
  std::vector<std::string> arguments;  // the first is the program: a path, or a name to find along PATH
  std::optional<std::vector<std::string>> environment{};  // of "NAME=value"; none: as this process
  std::filesystem::path working_directory{};              // empty: as this process; otherwise program paths begin
                                                          // there
  stdio in{};                                             // standard input
  stdio out{};                                            // standard output
  stdio err{};                                            // standard error
  bool own_group = false;                                 // a process group of its own, for process::kill_group
};

// How a process ended.
struct exit_status {
  int code = 0;    // its exit code, if no signal ended it
  int signal = 0;  // the signal that ended it, or 0

  // Whether the program returned 0.
  [[nodiscard]] bool success() const noexcept { return code == 0 && signal == 0; }
  friend bool operator==(const exit_status&, const exit_status&) = default;
};

// Describes a status: "exit code 1", "signal 9 (SIGKILL)".
[[nodiscard]] std::string to_string(exit_status status);

// A started program. Waits use a pidfd and no SIGCHLD, but the action of SIGCHLD must not be SIG_IGN; without a pidfd
// they check every 10 ms. Movable while it is not in use; a moved-from process can only be assigned to and destroyed.
//
// The program begins with no signal blocked and with every signal's default action. It has no descriptors except the
// three standard streams: all others are closed, whatever their flags.
class process {
 public:
  // Starts the program by posix_spawn, which copies no page tables and reports a failed execution. posix_spawn blocks
  // its thread until the program executes, so it runs on a thread that may block (ulexite::blocking). A cancellation
  // point until posix_spawn begins. Throws std::system_error that names the program (and the working directory) if the
  // program does not exist or cannot be executed, or if the system refuses. A text with a NUL is invalid_argument.
  // Throws usage_error without arguments, and for stdio::as_out as another stream than standard error.
  explicit process(const process_options& options);
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;  // first ends its own process as the destructor does
  // Kills the program with SIGKILL and reaps it, unless a wait has seen its end. Waits for its death under a shield. If
  // the system refuses the signal, waits until the program ends by itself. Programs that it has started are not killed,
  // unless it has its own_group: then all that is still in the group is killed too, also after a wait. The destructor
  // does not wait for those.
  ~process();

  // This process's end of its standard input, closed unless it is a pipe. Close it to let the program read the end.
  [[nodiscard]] pipe_writer& in() noexcept { return in_; }
  // This process's end of its standard output, closed unless it is a pipe.
  [[nodiscard]] pipe_reader& out() noexcept { return out_; }
  // This process's end of its standard error, closed unless it is a pipe.
  [[nodiscard]] pipe_reader& err() noexcept { return err_; }

  // The number of the process. After a wait has seen its end, another process may get this number, unless the program
  // has its own_group: then it keeps the number until the destructor.
  [[nodiscard]] pid_t id() const noexcept;

  // Waits for the end of the program, and reaps it, unless it has its own_group. A later call returns the status again.
  // A cancellation point; a cancelled wait does not end the program. Any number of fibers and threads may wait. wait()
  // does not read or close the pipes. If the program's output is not read, the program waits for ever when the pipe is
  // full. Throws std::system_error if other code has reaped the program.
  exit_status wait() { return *wait_until_ns(detail::no_deadline); }
  // Waits as wait(), at most for `time`, or until `time`. Returns nullopt if the time passed first.
  [[nodiscard]] std::optional<exit_status> wait_for(relative_timeout time) { return wait_until_ns(time.deadline()); }
  [[nodiscard]] std::optional<exit_status> wait_until(absolute_timeout time) { return wait_until_ns(time.deadline()); }

  // Sends the program a signal (of <csignal>). False if a wait has seen its end: then no process gets the signal. Never
  // waits. Any thread. Throws std::system_error for a number that is not a signal, or if this process may not signal
  // the other (set-user-ID). It is no_such_process if other code has reaped the program.
  bool kill(int signal);
  // Sends a signal to the program and to all programs of its group: those that it has started, and those that these
  // have started, except those that have left the group (setsid(2), setpgid(2)). Also after a wait has seen the
  // program's end. Never waits. Any thread. Throws usage_error unless the program has its own_group, and
  // std::system_error as kill() does.
  //
  // A terminal's Ctrl-C does not reach such a group, and the system stops a program in it that reads the terminal.
  void kill_group(int signal);

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
  std::string out;     // its standard output
  std::string err;     // its standard error, if options.err was stdio::pipe
  bool cut = false;    // whether `out` or `err` is only the beginning, because the program wrote more than the limit
};

// Runs a program to its end and returns its standard output. Ignores options.out. `input` is the program's standard
// input; if `input` is empty, options.in applies. The status reports a failure of the program. If the program has
// started another program that keeps the output open, output_of waits for that one too. With options.own_group, those
// that are left at the end are killed.
//
// If the program writes more than `limit` bytes to its standard output, or to its standard error, output_of kills it
// (with its own_group) and returns the first `limit` bytes of each.
//
// In fibers only. A cancellation point: a cancelled program is killed and reaped. Throws as the constructor of process.
// Throws std::system_error if the input cannot be written, except if the program does not read on.
[[nodiscard]] process_output output_of(process_options options, std::string_view input = {},
                                       std::size_t limit = std::string::npos);

}  // namespace ulexite::os
