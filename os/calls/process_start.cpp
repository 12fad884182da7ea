#include <ulexite/base/error.hpp>
#include <ulexite/base/nul.hpp>
#include <ulexite/os/calls/process_start.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace ulexite::detail {
namespace {

using os::pipe_reader;
using os::pipe_writer;
using os::process_options;
using os::stdio;

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::system_category(), what);
}

// A descriptor of this process during the start.
class unique_fd {
 public:
  explicit unique_fd(int fd = -1) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  void release() noexcept { fd_ = -1; }

 private:
  int fd_;
};

class attributes {
 public:
  explicit attributes(bool own_group) {
    check(::posix_spawnattr_init(&value_), "ulexite: preparing to start a program");
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&value_, &none);
    ::posix_spawnattr_setsigdefault(&value_, &all);
    ::posix_spawnattr_setpgroup(&value_, 0);  // of the program's own number
    const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;
    ::posix_spawnattr_setflags(&value_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  }
  attributes(const attributes&) = delete;
  attributes& operator=(const attributes&) = delete;
  ~attributes() { ::posix_spawnattr_destroy(&value_); }
  [[nodiscard]] const posix_spawnattr_t* get() const noexcept { return &value_; }

 private:
  posix_spawnattr_t value_;
};

// The steps of the new process before it executes the program. It sets up its standard streams and its directory. Last,
// it closes all other descriptors, also without close-on-exec.
class file_actions {
 public:
  explicit file_actions(const process_options& options) {
    check(::posix_spawn_file_actions_init(&value_), "ulexite: preparing to start a program");
    try {
      const stdio* const streams[] = {&options.in, &options.out, &options.err};
      for (int target = 0; target < 3; ++target) add_stream(target, *streams[target]);
      for (int target = 0; target < 3; ++target) add_duplicate(target);
      if (options.err.what() == stdio::as_out) add(::posix_spawn_file_actions_adddup2(&value_, 1, 2));
      add(::posix_spawn_file_actions_addclosefrom_np(&value_, 3));
      if (!options.working_directory.empty())
        add(::posix_spawn_file_actions_addchdir_np(&value_, options.working_directory.c_str()));
    } catch (...) {
      ::posix_spawn_file_actions_destroy(&value_);
      throw;
    }
  }
  file_actions(const file_actions&) = delete;
  file_actions& operator=(const file_actions&) = delete;
  ~file_actions() { ::posix_spawn_file_actions_destroy(&value_); }

  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &value_; }
  // This process's end of a pipe, -1 if the stream is none.
  unique_fd& our_end(int target) { return ours_[static_cast<std::size_t>(target)]; }

 private:
  static constexpr int inherited = -1;

  static void add(int error) { check(error, "ulexite: preparing to start a program"); }

  void add_stream(int target, stdio stream) {
    const auto index = static_cast<std::size_t>(target);
    switch (stream.what()) {
      case stdio::inherit: break;
      case stdio::descriptor:
        if (stream.fd() < 0)
          throw usage_error("a standard stream of a program cannot be fd " + std::to_string(stream.fd()));
        sources_[index] = stream.fd();
        break;
      case stdio::pipe: {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) check(errno, "ulexite: making a pipe");
        ours_[index] = unique_fd(ends[target == 0 ? 1 : 0]);
        theirs_[index] = unique_fd(ends[target == 0 ? 0 : 1]);
        sources_[index] = theirs_[index].get();
        break;
      }
      case stdio::null:
        theirs_[index] = unique_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (theirs_[index].get() < 0) check(errno, "ulexite: opening /dev/null");
        sources_[index] = theirs_[index].get();
        break;
      case stdio::as_out:
        if (target != 2)
          throw usage_error(std::string("standard ") + (target == 0 ? "input" : "output") +
                            " of a program cannot be stdio::as_out, which is for standard error");
        break;
    }
  }

  // A standard stream may be the source of another one. So a source is moved to another number before it could be
  // replaced.
  void add_duplicate(int target) {
    const auto index = static_cast<std::size_t>(target);
    int& source = sources_[index];
    if (source == inherited) return;
    if (source < 3 && source != target) {
      unique_fd moved(::fcntl(source, F_DUPFD_CLOEXEC, 3));
      if (moved.get() < 0)
        throw std::system_error(errno, std::system_category(),
                                "ulexite: giving a program fd " + std::to_string(source) + " as a standard stream");
      source = moved.get();
      theirs_[index] = std::move(moved);
    }
    add(::posix_spawn_file_actions_adddup2(&value_, source, target));
  }

  posix_spawn_file_actions_t value_;
  std::array<int, 3> sources_{inherited, inherited, inherited};
  std::array<unique_fd, 3> ours_, theirs_;
};

// The pointers to the strings and a final null, as exec needs them.
std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& each : strings) result.push_back(const_cast<char*>(each.c_str()));
  result.push_back(nullptr);
  return result;
}

std::string name_of(const process_options& options) {
  std::string name = options.arguments.front();
  if (!options.working_directory.empty()) name += " in " + options.working_directory.string();
  return escaped(name);
}

// Refuses NULs, because exec and chdir would take the text before a NUL.
void refuse_nuls(const process_options& options) {
  const auto check = [&](const std::string& text, const std::string& what) {
    if (has_nul(text))
      throw std::system_error(EINVAL, std::system_category(),
                              "ulexite: starting " + name_of(options) + ": " + what + " is " + shown(text));
  };
  const auto check_each = [&](const std::vector<std::string>& texts, const std::string& what) {
    for (std::size_t i = 0; i < texts.size(); ++i) check(texts[i], what + std::to_string(i));
  };
  check_each(options.arguments, "argument ");
  if (options.environment) check_each(*options.environment, "environment entry ");
  check(options.working_directory.native(), "the working directory");
}

template <class End>
End taken(unique_fd& fd) {
  if (fd.get() < 0) return {};
  const int given = fd.get();
  fd.release();  // first: adopt closes it if memory is short, and fails in no other way
  return End::adopt(given);
}

}  // namespace

// The pipes are adopted before the process exists, so a failure has no process to end.
started_process start_process(const process_options& options) {
  refuse_nuls(options);
  const std::vector<char*> arguments = pointers_to(options.arguments);
  std::vector<char*> environment;
  if (options.environment) environment = pointers_to(*options.environment);
  file_actions actions(options);
  const attributes with(options.own_group);
  started_process started;
  started.in = taken<pipe_writer>(actions.our_end(0));
  started.out = taken<pipe_reader>(actions.our_end(1));
  started.err = taken<pipe_reader>(actions.our_end(2));
  const int error = ::posix_spawnp(&started.pid, arguments.front(), actions.get(), with.get(), arguments.data(),
                                   options.environment ? environment.data() : environ);
  if (error != 0) throw std::system_error(error, std::system_category(), "ulexite: starting " + name_of(options));
  return started;
}

}  // namespace ulexite::detail
