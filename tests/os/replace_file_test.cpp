// Files that replace_file puts in place, also as others see them meanwhile.

#include "os/os_fixture.hpp"

#include <ulexite/os/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace {

std::atomic<mode_t> mode_before_fchmod{0};

enum class part { none, unnamed_files, links, proc };
std::atomic<part> missing{part::none};  // in the system, as the library sees it

enum class call { none, write, sync };
std::atomic<call> deadly{call::none};  // kills the process
std::atomic<int> syncs{0};

int refused(int error) noexcept {
  errno = error;
  return -1;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t permissions = makes ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_TMPFILE) == O_TMPFILE && missing == part::unnamed_files) return refused(EOPNOTSUPP);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, permissions));
}

extern "C" int linkat(int from, const char* name, int to, const char* other_name, int flags) noexcept {
  if (missing == part::links) return refused(EPERM);
  return static_cast<int>(::syscall(SYS_linkat, from, name, to, other_name, flags));
}

extern "C" int access(const char* path, int way) noexcept {
  if (missing == part::proc && std::string_view(path).starts_with("/proc/")) return refused(ENOENT);
  return static_cast<int>(::syscall(SYS_faccessat, AT_FDCWD, path, way));
}

extern "C" ssize_t write(int fd, const void* data, std::size_t size) {
  if (deadly != call::write) return ::syscall(SYS_write, fd, data, size);
  ::syscall(SYS_write, fd, data, size / 2);
  std::raise(SIGKILL);
  return -1;
}

extern "C" int fsync(int fd) {
  ++syncs;
  if (deadly == call::sync) std::raise(SIGKILL);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int fchmod(int fd, mode_t mode) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) == 0) mode_before_fchmod = status.st_mode;
  return static_cast<int>(::syscall(SYS_fchmod, fd, mode));
}

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::directory;
using namespace ulexite::test;
namespace fs = std::filesystem;

std::set<fs::path> names_in(const fs::path& directory) {
  std::set<fs::path> names;
  for (const auto& each : fs::directory_iterator(directory)) names.insert(each.path().filename());
  return names;
}

bool has_unnamed_files(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

class ReplaceFile : public OsTest {
 protected:
  // On a whole system, and on those that lack a part. Each begins with an empty directory.
  template <class Body>
  void in_runtime(Body&& body) {
    for (const part without : {part::none, part::unnamed_files, part::links, part::proc}) {
      SCOPED_TRACE("without part " + std::to_string(static_cast<int>(without)));
      missing = without;
      OsTest::in_runtime(body);
      missing = part::none;
      for (const auto& name : names_in(scratch_.path())) {
        EXPECT_FALSE(name.native().starts_with(".ulexite."));
        fs::remove_all(scratch_ / name);
      }
    }
  }

  // Replaces the file while the process acts for `user`, if it may. One thread alone could not: a call that takes long
  // leaves its worker to another thread of the pool.
  static void replace_as(uid_t user, const fs::path& path) {
    const bool as_root = ::geteuid() == 0;
    if (as_root) EXPECT_EQ(::seteuid(user), 0);
    std::error_code error;
    replace_file(path, "new", error);
    if (as_root) EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(error, std::error_code());
  }

  const scratch_directory scratch_;
};
ULEXITE_TEST_WORKERS(ReplaceFile);

TEST_P(ReplaceFile, NeverLetsMoreUsersReadThanTheOldFile) {
  in_runtime([&] {
    const auto path = scratch_ / "secret";
    write_all(path, "old");
    fs::permissions(path, fs::perms(0600));
    replace_file(path, "new");
    EXPECT_EQ(mode_before_fchmod & 07777, 0600u);
    fs::permissions(path, fs::perms(0666));
    replace_file(path, "for all");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0666));
  });
}

// The system takes these bits away at a write of an ordinary user. The process acts for such a user, because root may
// keep them.
TEST_P(ReplaceFile, KeepsTheRightToActForItsOwner) {
  in_runtime([&] {
    constexpr uid_t ordinary = 65534;
    const bool as_root = ::geteuid() == 0;
    const auto path = scratch_ / "program";
    write_all(path, "old");
    if (as_root)
      ASSERT_EQ(::chown(scratch_.path().c_str(), ordinary, gid_t(-1)) + ::chown(path.c_str(), ordinary, gid_t(-1)), 0);
    ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
    replace_as(ordinary, path);
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 06755u);
  });
}

TEST_P(ReplaceFile, GivesNoRightToActForAnotherOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can replace the file of another";
  in_runtime([&] {
    const auto path = scratch_ / "program";
    write_all(path, "old");
    ASSERT_EQ(::chown(path.c_str(), 65534, gid_t(-1)), 0);
    ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
    replace_file(path, "new");
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 02755u);
  });
}

TEST_P(ReplaceFile, KeepsTheGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can choose any group";
  in_runtime([&] {
    const auto path = scratch_ / "file";
    write_all(path, "old");
    ASSERT_EQ(::chown(path.c_str(), 0, 42), 0);
    ASSERT_EQ(::chmod(path.c_str(), 02664), 0);
    replace_file(path, "new");
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_gid, 42u);
    EXPECT_EQ(status.st_mode & 07777, 02664u);
  });
}

// The process acts for a user outside of the group.
TEST_P(ReplaceFile, GivesAnotherGroupNoMoreThanAllHad) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can choose any group";
  in_runtime([&] {
    constexpr uid_t ordinary = 65534;
    ASSERT_EQ(::chown(scratch_.path().c_str(), ordinary, gid_t(-1)), 0);
    for (const auto& [before, after] : {std::pair{0660u, 0600u}, {02775u, 0755u}, {0604u, 0600u}}) {
      const auto path = scratch_ / std::to_string(before);
      write_all(path, "old");
      ASSERT_EQ(::chown(path.c_str(), ordinary, 42), 0);
      ASSERT_EQ(::chmod(path.c_str(), before), 0);
      replace_as(ordinary, path);
      struct stat status{};
      EXPECT_EQ(::stat(path.c_str(), &status), 0);
      EXPECT_NE(status.st_gid, 42u);
      EXPECT_EQ(status.st_mode & 07777, after);
    }
  });
}

TEST_P(ReplaceFile, TakesTheLongestName) {
  in_runtime([&] {
    const auto path = scratch_ / std::string(255, 'n');
    replace_file(path, "old");
    replace_file(path, "new");
    EXPECT_EQ(read_all(path), "new");
  });
}

// Its owner may put files into the directory but not open it, so it cannot be synced. The process acts for an ordinary
// user, because root may open everything.
TEST_P(ReplaceFile, WorksInADirectoryThatMayNotBeRead) {
  in_runtime([&] {
    constexpr uid_t ordinary = 65534;
    const bool as_root = ::geteuid() == 0;
    const auto within = scratch_ / "within", path = within / "file";
    fs::create_directory(within);
    write_all(path, "old");
    fs::permissions(scratch_.path(), fs::perms(0711));
    if (as_root) ASSERT_EQ(::chown(within.c_str(), ordinary, ordinary) + ::chown(path.c_str(), ordinary, ordinary), 0);
    fs::permissions(within, fs::perms(0300));
    replace_as(ordinary, path);
    fs::permissions(within, fs::perms(0700));
    EXPECT_EQ(read_all(path), "new");
  });
}

// A system without /proc is found out before the data is written, but links that are refused only afterwards.
TEST_P(ReplaceFile, WritesTheDataOnce) {
  in_runtime([&] {
    for (const auto* const data : {"old", "new"}) {
      syncs = 0;
      replace_file(scratch_ / "file", data);
      const int files = missing == part::links ? 2 : 1, directories = 1;
      EXPECT_EQ(syncs, files + directories);
      EXPECT_EQ(read_all(scratch_ / "file"), data);
    }
  });
}

// Kills a child that replaces `path`. Returns the names that are in the directory then.
std::set<fs::path> names_after_a_kill(const fs::path& path, call in) {
  const pid_t child = ::fork();
  if (child == 0) {
    deadly = in;
    replace_file(path, std::string(8 << 20, 'x'));
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  return names_in(path.parent_path());
}

TEST(ReplaceFileKilled, LeavesNoName) {
  const scratch_directory scratch;
  if (!has_unnamed_files(scratch.path())) GTEST_SKIP() << "no O_TMPFILE in " << scratch.path();
  for (const call in : {call::write, call::sync}) EXPECT_EQ(names_after_a_kill(scratch / "file", in).size(), 0u);
  write_all(scratch / "file", "old");
  for (const call in : {call::write, call::sync}) EXPECT_EQ(names_after_a_kill(scratch / "file", in).size(), 1u);
  EXPECT_EQ(read_all(scratch / "file"), "old");
  missing = part::unnamed_files;
  EXPECT_EQ(names_after_a_kill(scratch / "file", call::sync).size(), 2u) << "no child was killed while a file existed";
  missing = part::none;
}

}  // namespace
