#pragma once

// A PostgreSQL server of the test's own, in a folder that goes with it. It does not run as root.

#include <ulexite/net/tcp.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

namespace ulexite::test {

// Its functions block the thread, some for seconds.
class postgres_server {
 public:
  // On a Unix socket, and on a free port of 127.0.0.1. nullptr: no postgresql is installed.
  static std::unique_ptr<postgres_server> make() {
    std::error_code none;
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none))
      if (std::filesystem::exists(version.path() / "bin/initdb"))
        return std::unique_ptr<postgres_server>(new postgres_server(version.path() / "bin"));
    return nullptr;
  }
  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;
  ~postgres_server() {
    stop("immediate");
    std::filesystem::remove_all(folder_);
  }

  // What a client says to connect: by the Unix socket, or by the name of this machine.
  [[nodiscard]] std::string where() const { return "host=" + folder_ + rest_of_where(); }
  [[nodiscard]] std::string where_by_name() const { return "host=localhost" + rest_of_where(); }

  [[nodiscard]] const std::string& port() const { return port_; }

  void start() {
    EXPECT_EQ(shell(command("pg_ctl") + " start -s -w -t 200 -l " + folder_ + "/log -o \"-k " + folder_ +
                    " -h 127.0.0.1 -p " + port_ + " -F -c shared_buffers=1MB -c max_connections=60\""),
              0);
  }
  // Modes of pg_ctl: "fast" ends the connections, "immediate" is a crash.
  void stop(const std::string& mode) { shell(command("pg_ctl") + " stop -s -m " + mode); }
  // Stops all of the server's processes by SIGSTOP, or lets them go on by SIGCONT.
  void freeze() { signal("STOP"); }
  void thaw() { signal("CONT"); }

 private:
  explicit postgres_server(const std::filesystem::path& programs)
      : programs_(programs), folder_("/tmp/ulexite_pg.XXXXXX") {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    if (::getuid() == 0) {
      EXPECT_EQ(shell("chown postgres " + folder_), 0);
    }
    EXPECT_EQ(shell(command("initdb") + " -U tester -A trust -N >/dev/null"), 0);
    // A user with a password, for whom the first line that fits counts.
    EXPECT_EQ(shell("sed -i '1i local all guarded scram-sha-256' " + folder_ + "/data/pg_hba.conf"), 0);
    port_ = std::to_string(net::tcp_listener(net::endpoint::parse("127.0.0.1:0")).local_endpoint().port());
    start();
  }

  [[nodiscard]] std::string rest_of_where() const { return " port=" + port_ + " user=tester dbname=postgres"; }
  [[nodiscard]] std::string command(const char* program) const {
    const std::string as = ::getuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups " : "";
    return "cd / && " + as + (programs_ / program).string() + " -D " + folder_ + "/data";
  }
  void signal(const std::string& name) {
    std::string process;
    std::getline(std::ifstream(folder_ + "/data/postmaster.pid"), process);
    EXPECT_EQ(shell("kill -" + name + " " + process + " && pkill -" + name + " -P " + process), 0);
  }
  static int shell(const std::string& line) { return std::system(line.c_str()); }

  const std::filesystem::path programs_;
  std::string folder_, port_;
};

}  // namespace ulexite::test
