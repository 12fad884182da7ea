#pragma once

// A redis-server of a test's own, which listens on a Unix socket in a folder that goes with it.

#include "support/server_process.hpp"

#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::test {

class redis_server : public server_process {
 public:
  // Whether Debian's redis-server is there.
  static bool installed() { return is_installed("redis-server"); }

  // Starts a server, with further options. What it has confirmed survives a SIGKILL.
  explicit redis_server(std::vector<std::string> options = {}) : options_(std::move(options)) {
    if (!::mkdtemp(folder_.data())) throw std::runtime_error("no folder for redis-server");
    start();
  }
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
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path().copy(name.sun_path, sizeof name.sun_path - 1);
    server_process::start(std::move(words), folder_ + "/log", [&] {
      const std::string answer = answer_of(name, "PING\r\n", 5);  // an error, if it wants a password
      return !answer.empty() && answer != "-LOAD";                // which it says while it loads its data
    });
  }

 private:
  [[nodiscard]] std::string path() const { return folder_ + "/socket"; }

  std::string folder_ = "/tmp/ulexite_redis.XXXXXX";
  const std::vector<std::string> options_;
};

}  // namespace ulexite::test
