// Files that replace_file puts in place, also as others see them meanwhile.

#include "os/os_fixture.hpp"

#include <ulexite/os/file.hpp>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

namespace {

std::atomic<mode_t> mode_before_fchmod{0};

}  // namespace

extern "C" int fchmod(int fd, mode_t mode) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) == 0) mode_before_fchmod = status.st_mode;
  return static_cast<int>(::syscall(SYS_fchmod, fd, mode));
}

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace fs = std::filesystem;

class ReplaceFile : public OsTest {
 protected:
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

}  // namespace
