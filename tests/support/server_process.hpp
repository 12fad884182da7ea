#pragma once

// A server program of a test's own.

#include <ulexite/base/standard.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ulexite::test {

// Its functions block the thread: in a fiber, call them in blocking().
class server_process {
 public:
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;

  // Ends it at once.
  void kill() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  // It does nothing until thaw. Its socket still takes connections and some bytes.
  void freeze() {
    ::kill(process_, SIGSTOP);
    int status = 0;
    ::waitpid(process_, &status, WUNTRACED);
  }
  void thaw() { ::kill(process_, SIGCONT); }

 protected:
  server_process() = default;
  ~server_process() { kill(); }

  // Whether there is such a program.
  static bool is_installed(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
  }
  // Starts the program, whose output goes to `log`, and waits until `answers()`. It gets none of the test's own pipes,
  // which would then not end with the test.
  template <class Answers>
  void start(std::vector<std::string> words, const std::string& log, Answers answers) {
    std::vector<char*> pointers;
    for (std::string& each : words) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    const int failed = ::posix_spawnp(&process_, pointers[0], &files, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error(words[0] + " cannot be started");
    while (!answers()) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) {
        process_ = 0;
        std::string line;
        for (const std::string& each : words) line += each + ' ';
        throw std::runtime_error(line + "ended at its start; its output went to " + log);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // The first `size` bytes that the server at `name` says to a client that begins with `question`; fewer if it ends.
  template <class Name>
  static std::string answer_of(const Name& name, std::string_view question, std::size_t size) {
    std::string answer(size, 0);
    const auto* const generic = reinterpret_cast<const sockaddr*>(&name);
    const int fd = ::socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ssize_t got = 0;
    if (::connect(fd, generic, sizeof name) == 0 && ::send(fd, question.data(), question.size(), MSG_NOSIGNAL) >= 0)
      got = ::recv(fd, answer.data(), answer.size(), MSG_WAITALL);
    ::close(fd);
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return answer;
  }

 private:
  pid_t process_ = 0;
};

}  // namespace ulexite::test
