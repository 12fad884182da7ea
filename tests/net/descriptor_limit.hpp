#pragma once

// How many descriptors there may be, and what takes them all: for tests of what happens without.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace ulexite::test {

// Sets the soft limit of descriptors while it lives; as high as allowed if no number is given.
class descriptor_limit {
 public:
  explicit descriptor_limit(rlim_t soft = RLIM_INFINITY) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &old_), 0);
    const rlimit limit{std::min(soft, old_.rlim_max), old_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~descriptor_limit() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old_), 0); }
  descriptor_limit(const descriptor_limit&) = delete;
  descriptor_limit& operator=(const descriptor_limit&) = delete;

  // `wanted`, or what the limit leaves of it, with a note.
  static std::size_t room_for(std::size_t wanted) {
    rlimit now{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
    const std::size_t room = now.rlim_cur > 200 ? now.rlim_cur - 200 : 1;
    if (room < wanted)
      std::printf("only %zu of %zu: the hard limit of descriptors is %zu\n", room, wanted,
                  static_cast<std::size_t>(now.rlim_max));
    return std::min(room, wanted);
  }

 private:
  rlimit old_{};
};

// Takes every descriptor but `spare` until it is destroyed.
class hoard {
 public:
  explicit hoard(std::size_t spare = 0) : limit_(100) {
    for (int fd; (fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) all_.push_back(fd);
    EXPECT_EQ(errno, EMFILE);
    give(spare);
  }
  ~hoard() { give(all_.size()); }
  hoard(const hoard&) = delete;
  hoard& operator=(const hoard&) = delete;

  void give(std::size_t count) {
    for (; count > 0 && !all_.empty(); --count, all_.pop_back()) ::close(all_.back());
  }

 private:
  const descriptor_limit limit_;
  std::vector<int> all_;
};

}  // namespace ulexite::test
