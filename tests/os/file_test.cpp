// Files; their calls are made beside the workers.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/task_group.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <semaphore>
#include <set>
#include <sstream>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::file;
using os::open_mode;
using namespace ulexite::test;
using enum open_mode;

class File : public OsTest {
 protected:
  const scratch_directory scratch_;
};
ULEXITE_TEST_WORKERS(File);

TEST_P(File, WhatIsWrittenIsRead) {
  in_runtime([&] {
    file both(scratch_ / "a", read | write | create);
    both.write_at("hello world", 0);
    both.write_at("W", 6);
    char text[100] = {};
    EXPECT_EQ(both.read_at(text, 5, 6), 5u);
    EXPECT_STREQ(text, "World");
    EXPECT_EQ(both.read_at(text, sizeof text, 0), 11u);  // to the end
    EXPECT_EQ(both.read_at(text, sizeof text, 11), 0u);
    EXPECT_EQ(both.read_at(text, 0, 0), 0u);
    EXPECT_EQ(both.size(), 11u);
  });
}

TEST_P(File, AWriteBeyondTheEndLeavesZeros) {
  in_runtime([&] {
    file both(scratch_ / "a", read | write | create);
    both.write_at("x", 3);
    EXPECT_EQ(read_all(scratch_ / "a"), std::string("\0\0\0x", 4));
    both.truncate(2);
    EXPECT_EQ(both.size(), 2u);
    both.truncate(5);
    both.sync();
    EXPECT_EQ(read_all(scratch_ / "a"), std::string(5, '\0'));
  });
}

TEST_P(File, MegabytesComeBack) {
  in_runtime([&] {
    std::string data(9'000'001, ' ');
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 2654435761u >> 13);
    write_all(scratch_ / "a", data);
    EXPECT_TRUE(read_all(scratch_ / "a") == data);
    file from(scratch_ / "a");
    std::string part(5'000'000, ' ');
    EXPECT_EQ(from.read_at(part.data(), part.size(), 4'000'000), part.size());
    EXPECT_TRUE(part == data.substr(4'000'000, part.size()));
    write_all(scratch_ / "a", "short");  // replaces
    EXPECT_EQ(read_all(scratch_ / "a"), "short");
  });
}

TEST_P(File, ReadingAllTakesTheMemoryOfTheContent) {
  in_runtime([&] {
    const std::string data(1'000'000, 'd');
    write_all(scratch_ / "file", data);
    const std::string content = read_all(scratch_ / "file");
    EXPECT_TRUE(content == data);
    EXPECT_LT(content.capacity(), data.size() * 11 / 10);
  });
}

TEST_P(File, WhatHasNoSizeIsReadToItsEnd) {
  in_runtime([&] {
    EXPECT_NE(read_all("/proc/self/status").find("Pid:"), std::string::npos);
    EXPECT_EQ(read_all("/dev/null"), "");
  });
}

TEST_P(File, ModesMeanWhatTheySay) {
  in_runtime([&] {
    write_all(scratch_ / "a", "old");
    file(scratch_ / "a", write | create);
    EXPECT_EQ(read_all(scratch_ / "a"), "old");
    file(scratch_ / "a", write | truncate);
    EXPECT_EQ(read_all(scratch_ / "a"), "");
    file log(scratch_ / "a", write | open_mode::append);
    log.write_at("one ", 0);
    log.write_at("two", 0);
    EXPECT_EQ(read_all(scratch_ / "a"), "one two");
    EXPECT_EQ(code_of([&] { file(scratch_ / "a", write | create | exclusive); }), std::errc::file_exists);
    EXPECT_EQ(code_of([&] { file(scratch_ / "b", write); }), std::errc::no_such_file_or_directory);
    EXPECT_THROW(file(scratch_ / "a", open_mode{}), usage_error);
    EXPECT_THROW(file(scratch_ / "a", read | truncate), usage_error);
    EXPECT_EQ(read_all(scratch_ / "a"), "one two");
    char letter = 0;
    EXPECT_EQ(code_of([&] { log.read_at(&letter, 1, 0); }), std::errc::bad_file_descriptor);
  });
}

TEST_P(File, IsPrivateToTheProcessAndHasItsPermissions) {
  in_runtime([&] {
    file made(scratch_ / "a", write | create, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    struct stat status{};
    ASSERT_EQ(::fstat(made.native_handle(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_TRUE(::fcntl(made.native_handle(), F_GETFD) & FD_CLOEXEC);
  });
}

TEST_P(File, ErrorsNameTheFileAndWhatWasDone) {
  in_runtime([&] {
    const auto missing = (scratch_ / "missing").string();
    EXPECT_NE(message_of([&] { file from(missing); }).find("opening " + missing), std::string::npos);
    EXPECT_NE(message_of([&] { (void)read_all(missing); }).find("reading " + missing), std::string::npos);
    EXPECT_NE(message_of([&] { write_all(missing + "/x", ""); }).find("writing " + missing), std::string::npos);
    EXPECT_EQ(code_of([&] { (void)read_all(scratch_.path()); }), std::errc::is_a_directory);

    std::error_code error;
    const file none(missing, read, error);
    EXPECT_EQ(error, std::errc::no_such_file_or_directory);
    EXPECT_FALSE(none.is_open());
    EXPECT_EQ(read_all(missing, error), "");
    EXPECT_EQ(error, std::errc::no_such_file_or_directory);
    write_all(scratch_ / "a", "x", error);
    EXPECT_FALSE(error);

    file given = file::adopt(::open("/dev/full", O_WRONLY | O_CLOEXEC), "the full device");
    EXPECT_EQ(given.write_at("abc", 3, 0, error), 0u);
    EXPECT_EQ(error, std::errc::no_space_on_device);
    EXPECT_NE(message_of([&] { given.append("x"); }).find("appending to the full device"), std::string::npos);
    EXPECT_EQ(code_of([] { (void)file::adopt(-1, "a log"); }), std::errc::bad_file_descriptor);
    EXPECT_NE(message_of([] { (void)file::adopt(-17, "a log"); }).find("adopting fd -17 as a log"), std::string::npos);
    file limits(scratch_ / "a", read | write);
    EXPECT_EQ(code_of([&] { limits.write_at("x", ~std::uint64_t{0}); }), std::errc::file_too_large);
    EXPECT_EQ(code_of([&] { limits.truncate(~std::uint64_t{0}); }), std::errc::file_too_large);
    char letter = 0;
    EXPECT_EQ(code_of([&] { limits.read_at(&letter, 1, ~std::uint64_t{0}); }), std::errc::invalid_argument);
  });
}

// open(2) would stop at it, and take the text before it.
TEST_P(File, APathWithANulIsRefused) {
  in_runtime([&] {
    write_all(scratch_ / "a", "secret");
    const std::string path = (scratch_ / "a").string() + std::string("\0.jpg", 5);
    std::error_code error;
    EXPECT_EQ(read_all(path, error), "");
    EXPECT_EQ(error, std::errc::invalid_argument);
    EXPECT_EQ(code_of([&] { write_all(path, "x"); }), std::errc::invalid_argument);
    EXPECT_EQ(code_of([&] { file from(path); }), std::errc::invalid_argument);
    const std::string said = message_of([&] { (void)read_all(path); });
    EXPECT_NE(said.find("a\\0.jpg\", which contains a NUL"), std::string::npos) << said;
    EXPECT_EQ(read_all(scratch_ / "a"), "secret");
  });
}

TEST_P(File, AClosedOneFailsAndClosesAgain) {
  in_runtime([&] {
    file one(scratch_ / "a", read | write | create);
    file moved = std::move(one);
    EXPECT_FALSE(one.is_open());
    moved.write_at("x", 0);
    moved.close();
    moved.close();
    EXPECT_FALSE(moved.is_open());
    EXPECT_EQ(code_of([&] { moved.write_at("x", 0); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { (void)moved.size(); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { file().sync(); }), std::errc::bad_file_descriptor);
    const int released = file(scratch_ / "a").release();
    EXPECT_EQ(::close(released), 0);
  });
}

TEST_P(File, AppendsOfManyFibersKeepTheirLinesWhole) {
  in_runtime([&] {
    file log(scratch_ / "log", read | write | create);
    constexpr int writers = 20, lines = 20;
    task_group all;
    for (int i = 0; i < writers; ++i)
      all.spawn([&log, i] {
        for (int k = 0; k < lines; ++k) log.append(std::to_string(i) + " " + std::to_string(k) + "\n");
      });
    all.wait();
    std::multiset<std::string> seen;
    std::istringstream content(read_all(scratch_ / "log"));
    for (std::string line; std::getline(content, line);) seen.insert(line);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(writers * lines));
    for (int i = 0; i < writers; ++i)
      for (int k = 0; k < lines; ++k) EXPECT_EQ(seen.count(std::to_string(i) + " " + std::to_string(k)), 1u);
  });
}

TEST_P(File, ManyFibersUseTheirPartsOfOne) {
  in_runtime([&] {
    constexpr std::size_t parts = 50, part_size = 10'000;
    file shared(scratch_ / "a", read | write | create);
    task_group all;
    for (std::size_t i = 0; i < parts; ++i)
      all.spawn([&, i] {
        const std::string mine(part_size, static_cast<char>('!' + i));
        shared.write_at(mine, i * part_size);
        std::string back(part_size, ' ');
        EXPECT_EQ(shared.read_at(back.data(), back.size(), i * part_size), part_size);
        EXPECT_EQ(back, mine);
      });
    all.wait();
    EXPECT_EQ(shared.size(), parts * part_size);
  });
}

// The one thread of the pool is taken: so the calls wait for it, and nothing is done.
TEST_P(File, ACancelledCallIsNotMade) {
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [&] {
    file both(scratch_ / "a", read | write | create);
    busy_pool busy;
    const std::string much(1'000'000, 'x');  // no file system takes so much on the worker
    auto writer = spawn([&] { both.write_at(much, 0); });
    auto quiet = spawn([&] {
      std::error_code error;
      EXPECT_EQ(both.write_at(much.data(), much.size(), 0, error), 0u);
      return error;
    });
    auto opener = spawn([&] { file(scratch_ / "b", write | create); });
    wait_until([&] {
      return current_runtime().metrics().blocking_queued == 3 || writer.done() || quiet.done() || opener.done();
    });
    auto closer = spawn([&] { both.close(); });
    writer.request_stop();
    quiet.request_stop();
    opener.request_stop();
    closer.request_stop();
    EXPECT_THROW(writer.get(), operation_cancelled);
    EXPECT_EQ(quiet.get(), errc::cancelled);
    EXPECT_THROW(opener.get(), operation_cancelled);
    busy.end();
    closer.get();  // a file is closed, whatever happens
    EXPECT_FALSE(both.is_open());
    EXPECT_EQ(read_all(scratch_ / "a"), "");
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "b"));
  });
}

TEST_P(File, WhatLiesInMemoryNeedsNoThread) {
  if (!is_in_memory("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs";
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [&] {
    file both = file::adopt(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), "a file in memory");
    char text[100] = {};
    both.write_at("a", 0);  // finds out that these calls need no wait
    EXPECT_EQ(both.read_at(text, 1, 0), 1u);
    file moved = std::move(both);
    {
      const busy_pool busy;  // so nothing here needs a thread of it
      moved.write_at("hello", 0);
      moved.append(" world");
      EXPECT_EQ(moved.read_at(text, sizeof text, 0), 11u);
    }
    EXPECT_STREQ(text, "hello world");
  });
}

TEST_P(File, AnExistingFileIsOpenedWithoutAThread) {
  struct stat status{};
  ASSERT_EQ(::stat(scratch_.path().c_str(), &status), 0);
  if (major(status.st_dev) == 0) GTEST_SKIP() << "the directory for temporary files is on no disk";
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [&] {
    write_all(scratch_ / "a", "content");
    EXPECT_TRUE(opens_without_a_thread([&] { return file(scratch_ / "a"); }));
    EXPECT_TRUE(opens_without_a_thread([&] { return file(scratch_ / "a", write); }));
  });
}

// The device number of a file system in memory does not tell what it is, so the pool finds out.
TEST_P(File, AFileInMemoryIsOpenedWithoutAThread) {
  if (!is_in_memory("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs";
  const scratch_directory in_memory("/dev/shm");
  in_runtime({.threads = GetParam(), .blocking_threads = 1}, [&] {
    write_all(in_memory / "a", "content");
    EXPECT_TRUE(opens_without_a_thread([&] { return file(in_memory / "a"); }));
  });
}

TEST_P(File, APipeIsOpenedWithItsOtherEnd) {
  in_runtime([&] {
    const std::string path = scratch_ / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    auto reader = spawn([&] { return file(path).release(); });
    const int written = file(path, write).release();
    const int read = reader.get();
    EXPECT_EQ(::fcntl(read, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(::write(written, "x", 1), 1);
    char letter = 0;
    EXPECT_EQ(::read(read, &letter, 1), 1);
    ::close(read);
    ::close(written);
  });
}

TEST(FileOutside, WorksOnAPlainThread) {
  const scratch_directory scratch;
  write_all(scratch / "a", "plain");
  EXPECT_EQ(read_all(scratch / "a"), "plain");
}

TEST_P(File, AFileIsReplacedAsAWhole) {
  in_runtime([&] {
    const auto path = scratch_ / "replaced";
    replace_file(path, "first");
    EXPECT_EQ(read_all(path), "first");
    std::filesystem::permissions(path, std::filesystem::perms(0640));
    file old(path);
    replace_file(path, std::string(100'000, 'x'));
    EXPECT_EQ(read_all(path).size(), 100'000u);
    EXPECT_EQ(old.size(), 5u);  // who had it open sees the old one
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0640));
    std::filesystem::create_symlink(path, scratch_ / "link");
    replace_file(scratch_ / "link", "no link");
    EXPECT_FALSE(std::filesystem::is_symlink(scratch_ / "link"));
    EXPECT_EQ(read_all(path).size(), 100'000u);
    std::error_code error;
    replace_file(scratch_ / "none" / "file", "x", error);
    EXPECT_EQ(error, std::errc::no_such_file_or_directory);
    std::filesystem::create_directory(scratch_ / "directory");
    replace_file(scratch_ / "directory", "x", error);
    EXPECT_TRUE(error);
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(scratch_ / "")) ++entries;
    EXPECT_EQ(entries, 3u) << "something was left behind";
  });
}

// A reader never sees a part.
TEST_P(File, AReplacementIsAtomic) {
  in_runtime([&] {
    const auto path = scratch_ / "atomic";
    replace_file(path, std::string(1000, 'a'));
    std::atomic<bool> done{false};
    auto reading = spawn([&] {
      while (!done) {
        const std::string seen = read_all(path);
        EXPECT_EQ(seen.size(), 1000u);
        EXPECT_EQ(seen.find_first_not_of(seen.front()), seen.npos);
      }
    });
    for (int i = 0; i < 20; ++i) replace_file(path, std::string(1000, static_cast<char>('a' + i)));
    done = true;
    reading.get();
  });
}

TEST_P(File, AClosedFileTakesNothing) {
  in_runtime([&] {
    file none;
    std::error_code error;
    EXPECT_EQ(none.append("", 0, error), 0u);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
    EXPECT_EQ(none.write_at("", 0, 0, error), 0u);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
    EXPECT_EQ(none.read_at(nullptr, 0, 0, error), 0u);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
  });
}

}  // namespace
