// Each function that the library replaces fails on request, under each of its names.

#include <ulexite/testing/faults.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>

namespace {

using ulexite::testing::fault_scope;
using ulexite::testing::system_call;

TEST(FaultNames, FilesFailUnderEachName) {
  char byte = 0;
  const iovec part{&byte, 1};
  const fault_scope all(1, SIZE_MAX);
  const ssize_t reads[] = {::pread(-1, &byte, 1, 0),   ::preadv(-1, &part, 1, 0),   ::preadv2(-1, &part, 1, 0, 0),
                           ::pread64(-1, &byte, 1, 0), ::preadv64(-1, &part, 1, 0), ::preadv64v2(-1, &part, 1, 0, 0)};
  for (const ssize_t each : reads) EXPECT_EQ(each, -1);
  EXPECT_EQ(all.failed(system_call::file_read), std::size(reads));
  EXPECT_EQ(errno, EIO);
  const ssize_t writes[] = {::pwrite(-1, &byte, 1, 0),      ::pwritev(-1, &part, 1, 0),
                            ::pwritev2(-1, &part, 1, 0, 0), ::pwrite64(-1, &byte, 1, 0),
                            ::pwritev64(-1, &part, 1, 0),   ::pwritev64v2(-1, &part, 1, 0, 0)};
  for (const ssize_t each : writes) EXPECT_EQ(each, -1);
  EXPECT_EQ(all.failed(system_call::file_write), std::size(writes));
  EXPECT_EQ(errno, ENOSPC);
  const int opened[] = {::open("/dev/null", O_RDONLY), ::openat(AT_FDCWD, "/dev/null", O_RDONLY),
                        ::open64("/dev/null", O_RDONLY), ::openat64(AT_FDCWD, "/dev/null", O_RDONLY)};
  for (const int each : opened) EXPECT_EQ(each, -1);
  EXPECT_EQ(all.failed(system_call::descriptor), std::size(opened));
  EXPECT_EQ(errno, EMFILE);
  EXPECT_EQ(::mmap64(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
}

TEST(FaultNames, MoreRepeatsThanNumbersFailAllLaterCalls) {
  char byte = 0;
  const fault_scope from_the_second(2, SIZE_MAX);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(::pread(-1, &byte, 1, 0), -1);
  EXPECT_EQ(from_the_second.failed(system_call::file_read), 3u);
}

TEST(FaultNames, AFileThatIsCreatedGetsItsMode) {
  const fault_scope count(0);
  const int made = ::open64("/tmp", O_TMPFILE | O_RDWR, 0640);
  if (made < 0) GTEST_SKIP() << "no unnamed files";
  struct stat status{};
  EXPECT_EQ(::fstat(made, &status), 0);
  EXPECT_EQ(status.st_mode & 0700, 0600u);
  ::close(made);
  EXPECT_EQ(count.calls(), 1u);
}

}  // namespace
