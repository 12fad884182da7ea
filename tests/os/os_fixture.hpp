#pragma once

// Shared by the tests of os: each runs on 1, 2, 4 and 8 workers, and leaves no descriptor open and no child behind.

#include "support/cancellation.hpp"
#include "support/clean_runtime.hpp"
#include "support/waiting.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace ulexite::test {

// Whether this process has a child, even a zombie.
inline bool has_children() {
  siginfo_t any{};
  return ::waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

class OsTest : public WorkersTest {
 protected:
  // Runs `body` as the main fiber of a new runtime, and ends that.
  template <class Body>
  void in_runtime(Body&& body) {
    in_runtime({.threads = GetParam()}, std::forward<Body>(body));
  }
  template <class Body>
  void in_runtime(const runtime_options& options, Body&& body) {
    run_and_leave_nothing(options, std::forward<Body>(body));
    EXPECT_FALSE(has_children());
  }
};

// A directory that goes with the test.
class scratch_directory {
 public:
  scratch_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "ulexite_os_test.XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::system_error(errno, std::system_category(), name);
    path_ = name;
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  ~scratch_directory() { std::filesystem::remove_all(path_); }

  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ulexite::test
