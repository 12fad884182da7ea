// Files below a directory, and never outside.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/directory.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::directory;
using os::file;
using os::open_mode;
using namespace ulexite::test;
using enum open_mode;
namespace fs = std::filesystem;

class Directory : public OsTest {
 protected:
  Directory() {
    fs::create_directories(scratch_ / "site/sub");
    fs::create_directories(scratch_ / "site/deep/deeper");
    write_all(scratch_ / "site/sub/page", "page");
    write_all(scratch_ / "secret", "secret");
    fs::create_symlink("../secret", scratch_ / "site/out");
    fs::create_symlink("sub/page", scratch_ / "site/in");
    fs::create_symlink(scratch_ / "secret", scratch_ / "site/absolute_out");
    fs::create_symlink(fs::canonical(scratch_ / "site") / "sub/page", scratch_ / "site/absolute_in");
    fs::create_symlink(fs::canonical(scratch_ / "site") / "sub", scratch_ / "site/absolute_sub");
    fs::create_symlink("../../sub", scratch_ / "site/deep/deeper/up");
  }
  const scratch_directory scratch_;
};
ULEXITE_TEST_WORKERS(Directory);

std::string content(const directory& of, const fs::path& below) {
  std::error_code error;
  file opened = of.open(below, read, error);
  if (error) return error == std::errc::no_such_file_or_directory ? "not found" : error.message();
  char text[100];
  return std::string(text, opened.read_at(text, sizeof text, 0));
}

TEST_P(Directory, OpensWhatIsInside) {
  in_runtime([&] {
    const directory site(scratch_ / "site");
    for (int i = 0; i < 3; ++i) {  // the first look may find nothing in memory
      EXPECT_EQ(content(site, "sub/page"), "page");
      EXPECT_EQ(content(site, "in"), "page");
      EXPECT_EQ(content(site, "sub/../in"), "page");
      EXPECT_EQ(content(site, "absolute_in"), "page");
      EXPECT_EQ(content(site, "absolute_sub/../in"), "page");
      EXPECT_EQ(content(site, "deep/deeper/up/page"), "page");
    }
    EXPECT_EQ(site.path(), fs::canonical(scratch_ / "site"));
  });
}

TEST_P(Directory, FindsNothingOutside) {
  in_runtime([&] {
    const directory site(scratch_ / "site");
    for (const char* const path : {"../secret", "out", "absolute_out", "sub/../../secret", "none", "/etc/passwd",
                                   "../secret/x", "out/x", "absolute_out/x"})
      EXPECT_EQ(content(site, path), "not found") << path;
    EXPECT_EQ(content(site, "sub/page/x"), "Not a directory");
    EXPECT_NE(content(site, std::string("sub/page\0x", 10)), "page");
    EXPECT_THROW((void)site.open("out"), std::system_error);
  });
}

TEST_P(Directory, MakesFilesInside) {
  in_runtime([&] {
    const directory site(scratch_ / "site");
    file made = site.open("sub/new", write | create | exclusive, fs::perms::owner_read | fs::perms::owner_write);
    made.write_at("new", 0);
    EXPECT_EQ(content(site, "sub/new"), "new");
    EXPECT_EQ(fs::status(scratch_ / "site/sub/new").permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_THROW((void)site.open("sub/new", write | create | exclusive), std::system_error);
    EXPECT_TRUE(site.open("absolute_sub/second", write | create).is_open());
    EXPECT_TRUE(fs::exists(scratch_ / "site/sub/second"));
    EXPECT_THROW((void)site.open("../new", write | create), std::system_error);
    EXPECT_FALSE(fs::exists(scratch_ / "new"));
    EXPECT_THROW((void)site.open("sub/new", create), usage_error);
  });
}

// A link that leads out tells nothing of what is there, also to who makes a file. `exclusive` refuses any link.
TEST_P(Directory, MakesNothingThroughALinkThatLeadsOut) {
  in_runtime([&] {
    fs::create_symlink("../none", scratch_ / "site/dangling_out");
    fs::create_symlink(scratch_ / "none", scratch_ / "site/absolute_dangling_out");
    fs::create_symlink("../../secret", scratch_ / "site/sub/out");
    const directory site(scratch_ / "site");
    for (const char* const path :
         {"out", "absolute_out", "dangling_out", "absolute_dangling_out", "absolute_sub/out"}) {
      std::error_code error;
      (void)site.open(path, write | create, fs::perms::owner_all, error);
      EXPECT_EQ(error, std::errc::no_such_file_or_directory) << path << ": " << error.message();
      (void)site.open(path, write | create | exclusive, fs::perms::owner_all, error);
      EXPECT_EQ(error, std::errc::file_exists) << path << ": " << error.message();
    }
    EXPECT_FALSE(fs::exists(scratch_ / "none"));
  });
}

// Otherwise the steps that are outside would tell what exists there.
TEST_P(Directory, FindsNothingByAPathThatLeavesAndReturns) {
  in_runtime([&] {
    const directory site(scratch_ / "site");
    const std::string inside = (site.path() / "sub/page").native(), home = site.path().filename().native();
    for (const std::string& path : {inside, "/" + inside, "../" + home + "/sub/page", "sub/../../" + home + "/sub/page",
                                    "deep/deeper/up/../../" + home + "/sub/page", "out/../" + home + "/sub/page"}) {
      EXPECT_EQ(content(site, path), "not found") << path;
      EXPECT_THROW((void)site.open(path + "2", write | create), std::system_error) << path;
    }
    EXPECT_FALSE(fs::exists(scratch_ / "site/sub/page2"));
  });
}

// A directory is swapped for a link that leads out, to and fro, while it is asked for.
TEST_P(Directory, IsNotDeceivedByAChangeMeanwhile) {
  in_runtime([&] {
    fs::create_directory(scratch_ / "outside");
    write_all(scratch_ / "outside/page", "outside");
    fs::create_directory_symlink(scratch_ / "outside", scratch_ / "link");
    std::atomic<bool> done{false};
    const fs::path moving = scratch_ / "site/sub", link = scratch_ / "link", aside = scratch_ / "aside";
    std::thread swapping([&] {
      while (!done) {
        ::rename(moving.c_str(), aside.c_str());
        ::rename(link.c_str(), moving.c_str());
        ::rename(moving.c_str(), link.c_str());
        ::rename(aside.c_str(), moving.c_str());
      }
    });
    const directory site(scratch_ / "site");
    for (int i = 0; i < 3000; ++i) EXPECT_NE(content(site, "sub/page"), "outside");
    done = true;
    swapping.join();
  });
}

TEST_P(Directory, APipeDoesNotHoldItUp) {
  in_runtime([&] {
    ASSERT_EQ(::mkfifo((scratch_ / "site/pipe").c_str(), 0600), 0);
    const directory site(scratch_ / "site");
    EXPECT_TRUE(site.open("pipe").is_open());
  });
}

// As file does. /proc has no disk, like a file system of another machine or process.
TEST_P(Directory, AnOpenThatMayWaitIsMadeOnThePool) {
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [] {
    const directory processes("/proc");
    EXPECT_TRUE(processes.open("version").is_open());  // from now on its path is in memory
    busy_pool busy;
    auto opening = spawn([&] { return processes.open("version").is_open(); });
    EXPECT_TRUE(waits_for_the_pool(opening));
    busy.end();
    EXPECT_TRUE(opening.get());
  });
}

TEST_P(Directory, AnOpenInItsLocalFileSystemNeedsNoThread) {
  if (!is_in_memory("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs";
  const scratch_directory local("/dev/shm");
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [&] {
    write_all(local / "page", "page");
    const directory site(local.path());
    EXPECT_TRUE(opens_without_a_thread([&] { return site.open("page"); }));
    EXPECT_TRUE(opens_without_a_thread([&] { return site.open("."); }));
    ASSERT_EQ(::mkfifo((local / "pipe").c_str(), 0600), 0);
    EXPECT_TRUE(opens_without_a_thread([&] { return site.open("pipe"); }));
  });
}

TEST_P(Directory, OpensAFileOfAnotherFileSystem) {
  in_runtime([] {
    const directory root("/");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(content(root, "proc/sys/kernel/ostype"), "Linux\n");
  });
}

TEST_P(Directory, SaysWhatItCannotOpen) {
  in_runtime([&] {
    try {
      const directory none(scratch_ / "none");
      FAIL();
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find("none"), std::string::npos);
    }
    std::error_code error;
    const directory no_directory(scratch_ / "secret", error);
    EXPECT_EQ(error, std::errc::not_a_directory);
    const directory site(scratch_ / "site");
    auto stopped = spawn([&] {
      while (!this_fiber::stop_requested()) this_fiber::yield();
      (void)site.open("in");
    });
    stopped.request_stop();
    EXPECT_THROW(stopped.get(), operation_cancelled);
  });
}

}  // namespace
