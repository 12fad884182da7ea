#pragma once

// A nats-server of a test's own, on a free port of 127.0.0.1.

#include <ulexite/net/tcp.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace ulexite::test {

// Its functions block the thread: in a fiber, call them in blocking().
class nats_server {
 public:
  // Whether Debian's nats-server is there.
  static bool installed() {
    return std::system("command -v nats-server >/dev/null") == 0;  // NOLINT(concurrency-mt-unsafe)
  }

  nats_server() : port_(net::tcp_listener(net::endpoint::parse("127.0.0.1:0")).local_endpoint().port()) { start(); }
  nats_server(const nats_server&) = delete;
  nats_server& operator=(const nats_server&) = delete;
  ~nats_server() { kill(); }

  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  // Starts it again on the same port, and waits until it answers.
  void start() {
    const std::string port = std::to_string(port_);
    std::array<const char*, 8> words{"nats-server", "-a", "127.0.0.1", "-p", port.c_str(), "-l", "/dev/null", nullptr};
    posix_spawn_file_actions_t files;  // none of the test's own pipes, which would then not end with the test
    posix_spawn_file_actions_init(&files);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    const int failed = ::posix_spawnp(&process_, words[0], &files, nullptr, const_cast<char**>(words.data()), environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error("nats-server cannot be started");
    while (!answers()) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) {
        process_ = 0;
        throw std::runtime_error("nats-server ended at its start, perhaps because port " + port + " is taken");
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
  // The server speaks first.
  [[nodiscard]] bool answers() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port_);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::array<char, 4> answer{};
    const bool answered = ::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
                          ::recv(fd, answer.data(), answer.size(), MSG_WAITALL) > 0;
    ::close(fd);
    return answered;
  }

  const std::uint16_t port_;
  pid_t process_ = 0;
};

}  // namespace ulexite::test
