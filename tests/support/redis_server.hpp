#pragma once

// A redis-server of a test's own, which listens on a Unix socket in a folder that goes with it.

#include <ulexite/base/standard.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ulexite::test {

// Its functions block the thread: in a fiber, call them in blocking().
class redis_server {
 public:
  // Whether Debian's redis-server is there.
  static bool installed() {
    return std::system("command -v redis-server >/dev/null") == 0;  // NOLINT(concurrency-mt-unsafe)
  }

  // Starts a server, with further options. What it has confirmed survives a SIGKILL.
  explicit redis_server(std::vector<std::string> options = {}) : options_(std::move(options)) {
    if (!::mkdtemp(folder_.data())) throw std::runtime_error("no folder for redis-server");
    start();
  }
  redis_server(const redis_server&) = delete;
  redis_server& operator=(const redis_server&) = delete;
  ~redis_server() {
    kill();
    std::filesystem::remove_all(folder_);
  }

  // As net::address::parse takes it.
  [[nodiscard]] std::string where() const { return "unix:" + path(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }

  // Starts it again, and waits until it answers.
  void start() {
    std::vector<std::string> words{"redis-server", "--port",     "0",       "--unixsocket", path(), "--dir",
                                   folder_,        "--save",     "",        "--appendonly", "yes",  "--appendfsync",
                                   "always",       "--loglevel", "warning", "--daemonize",  "no"};
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> pointers;
    for (std::string& each : words) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, (folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    const int failed = ::posix_spawnp(&process_, words[0].c_str(), &files, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error("redis-server cannot be started");
    while (!answers()) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) {
        process_ = 0;
        throw std::runtime_error("redis-server ended, see " + folder_ + "/log");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
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

 private:
  [[nodiscard]] std::string path() const { return folder_ + "/socket"; }
  [[nodiscard]] bool answers() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path().copy(name.sun_path, sizeof name.sun_path - 1);
    constexpr std::string_view ping = "PING\r\n";
    std::array<char, 5> answer{};  // an error, while it loads its data or wants a password, which it has then loaded
    const bool answered = ::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
                          ::send(fd, ping.data(), ping.size(), MSG_NOSIGNAL) > 0 &&
                          ::recv(fd, answer.data(), answer.size(), MSG_WAITALL) > 0 &&
                          std::string_view(answer.data(), answer.size()) != "-LOAD";
    ::close(fd);
    return answered;
  }

  std::string folder_ = "/tmp/ulexite_redis.XXXXXX";
  const std::vector<std::string> options_;
  pid_t process_ = 0;
};

}  // namespace ulexite::test
