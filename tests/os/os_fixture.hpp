#pragma once

// Shared by the tests of os: each runs on 1, 2, 4 and 8 workers, and leaves no descriptor open and no child behind.

#include "support/cancellation.hpp"
#include "support/clean_runtime.hpp"
#include "support/waiting.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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
  explicit scratch_directory(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "ulexite_os_test.XXXXXX").string();
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

inline bool is_in_memory(const char* path) {
  struct statfs status{};
  return ::statfs(path, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

// Whether `open` gives an open file while the one thread of the pool is taken. The first opens find out what the file
// system needs, and for a while a brief call may not be made.
template <class Open>
bool opens_without_a_thread(Open open) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(open().is_open());
  const busy_pool busy;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
       std::chrono::steady_clock::now() < end;) {
    auto opening = spawn([&] { return open().is_open(); });
    if (waits_for_the_pool(opening)) opening.request_stop();
    try {
      return opening.get();
    } catch (const operation_cancelled&) {
      this_fiber::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return false;
}

}  // namespace ulexite::test
