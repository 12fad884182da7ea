#include <ulexite/fiber/memory_advice.hpp>

#include "support/seccomp.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

using testing::ExitedWithCode;
using ulexite::detail::advise;

const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// Every other one of `count` pages of new memory.
std::vector<iovec> scattered_pages(std::size_t count) {
  char* const memory =
      static_cast<char*>(::mmap(nullptr, 2 * count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::madvise(memory, 2 * count * page, MADV_NOHUGEPAGE);
  std::vector<iovec> pages;
  for (std::size_t i = 0; i < count; ++i) pages.push_back({memory + 2 * i * page, page});
  return pages;
}

bool resident(const void* address) {
  unsigned char state = 0;
  ::mincore(const_cast<void*>(address), page, &state);
  return state & 1;
}

std::size_t count_resident(const std::vector<iovec>& pages) {
  std::size_t count = 0;
  for (const iovec& each : pages) count += resident(each.iov_base);
  return count;
}

TEST(Advice, ReachesEachRangeAndNothingBetween) {
  const std::vector<iovec> pages = scattered_pages(100);
  ASSERT_EQ(advise(pages, MADV_POPULATE_WRITE), 100u);
  EXPECT_EQ(count_resident(pages), 100u);
  for (const iovec& each : pages) EXPECT_FALSE(resident(static_cast<char*>(each.iov_base) + page));
}

TEST(Advice, OfNoRangesDoesNothing) { EXPECT_EQ(advise({}, MADV_POPULATE_WRITE), 0u); }

TEST(Advice, StopsAtTheFirstRangeThatIsRefused) {
  const std::vector<iovec> pages = scattered_pages(10);
  ::munmap(pages[6].iov_base, page);
  EXPECT_EQ(advise(pages, MADV_POPULATE_WRITE), 6u);
  ::munmap(pages[0].iov_base, page);
  EXPECT_EQ(advise(pages, MADV_POPULATE_WRITE), 0u);
}

void forbid_process_madvise() {
  if (!ulexite::test::refuse_system_call(SYS_process_madvise, EPERM)) std::exit(77);
}

TEST(Advice, GoesRangeByRangeWhereManyAtOnceAreForbidden) {
  EXPECT_EXIT(
      {
        forbid_process_madvise();
        const std::vector<iovec> pages = scattered_pages(100);
        if (advise(pages, MADV_POPULATE_WRITE) != 100 || count_resident(pages) != 100) std::exit(1);
        ::munmap(pages[6].iov_base, page);
        std::exit(advise(pages, MADV_POPULATE_WRITE) == 6 ? 0 : 2);
      },
      ExitedWithCode(0), "");
}

}  // namespace
