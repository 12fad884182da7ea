// Writes to a disk that wait although they seldom do, in a program whose pwritev2 comes before the system's.

#include "os/os_fixture.hpp"

#include <ulexite/os/file.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>
#include <string>

namespace {

std::atomic<bool> slow{false};
std::binary_semaphore gate{0};
std::atomic<pid_t> writer{0};  // the thread of the last write

}  // namespace

extern "C" ssize_t pwritev2(int fd, const iovec* parts, int count, off_t at, int flags) {
  writer = ::gettid();
  if (slow.exchange(false)) gate.acquire();
  const auto place = static_cast<unsigned long>(at);
  return ::syscall(SYS_pwritev2, fd, parts, count, place, 0, flags);
}
extern "C" ssize_t pwritev(int fd, const iovec* parts, int count, off_t at) {
  return pwritev2(fd, parts, count, at, 0);
}

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::file;
using os::open_mode;
using namespace ulexite::test;
using enum open_mode;

class SlowWrite : public OsTest {
 protected:
  void SetUp() override {
    struct stat status{};
    ASSERT_EQ(::stat(scratch_.path().c_str(), &status), 0);
    if (major(status.st_dev) == 0) GTEST_SKIP() << "the directory for temporary files is on no disk";
  }
  ~SlowWrite() override { slow = false; }

  const scratch_directory scratch_;
};
ULEXITE_TEST_WORKERS(SlowWrite);

// Whether the write is made on the caller's own thread.
template <class Write>
bool made_here(Write&& write) {
  const pid_t here = ::gettid();
  writer = 0;
  write();
  return writer == here;
}

// A busy machine may make some of the writes long.
TEST_P(SlowWrite, IsTheExceptionSoWritesNeedNoThread) {
  in_runtime({.threads = GetParam()}, [&] {
    file log(scratch_ / "log", read | write | create);
    int at = 0, appended = 0;
    std::string expected;
    for (int i = 0; i < 100; ++i) {
      at += made_here([&] { log.write_at("hello", expected.size()); });
      appended += made_here([&] { log.append(" world\n"); });
      expected += "hello world\n";
    }
    EXPECT_GT(at, 0);
    EXPECT_GT(appended, 0);
    log.close();
    EXPECT_EQ(read_all(scratch_ / "log"), expected);
  });
}

// While a write lasts, others go to the pool, whatever their file. Later ones do not.
TEST_P(SlowWrite, KeepsNoWorker) {
  in_runtime({.threads = GetParam()}, [&] {
    file log(scratch_ / "log", read | write | create), other(scratch_ / "other", write | create);
    slow = true;
    auto writing = spawn([&] { log.append("slow\n"); });
    wait_until([&] { return detail::this_agent().fiber().runtime().brief_calls.any_lasts(); });
    EXPECT_FALSE(made_here([&] { other.append("x"); }));
    gate.release();
    writing.join();
    EXPECT_EQ(read_all(scratch_ / "log"), "slow\n");
    wait_until([&] { return made_here([&] { other.append("x"); }); });
  });
}

// Its writes wait for the disk each time.
TEST_P(SlowWrite, IsThatOfASynchronousFile) {
  in_runtime({.threads = GetParam()}, [&] {
    file log = file::adopt(::open((scratch_ / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_DSYNC, 0600), "log");
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(made_here([&] { log.append("a"); }));
    EXPECT_EQ(log.size(), 3u);
  });
}

}  // namespace
