// How many workers the machine's limits allow.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/threads/cpus.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using detail::quota_processors;

// A folder that looks like that of a process, and one that looks like its control groups.
class Quota : public testing::Test {
 protected:
  Quota() { std::filesystem::create_directories(groups_); }
  ~Quota() override { std::filesystem::remove_all(folder_); }

  void mount(const std::string& type, const std::string& root, const std::string& options) {
    append(folder_ / "mountinfo", "30 24 0:26 " + root + " " + groups_.string() + " rw,nosuid shared:9 - " + type +
                                      " cgroup " + options + "\n");
  }
  void join(const std::string& line) { append(folder_ / "cgroup", line + "\n"); }
  void limit(const std::string& group, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(groups_.string() + group);
    append(groups_.string() + group + "/" + file, text + "\n");
  }
  std::size_t granted() { return quota_processors(folder_.string()); }

  static constexpr std::size_t unlimited = 1024;

 private:
  static void append(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::app) << text;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("ulexite_quota_" + std::to_string(::getpid()));
  const std::filesystem::path groups_ = folder_ / "groups";
};

TEST_F(Quota, IsThatOfANestedGroup) {
  mount("cgroup2", "/", "rw,nsdelegate");
  join("0::/system.slice/app.service");
  limit("/system.slice/app.service", "cpu.max", "150000 100000");
  limit("/system.slice", "cpu.max", "max 100000");
  EXPECT_EQ(granted(), 2u) << "one and a half, rounded up";
}

TEST_F(Quota, IsTheLeastOnTheWayUp) {
  mount("cgroup2", "/", "rw");
  join("0::/a/b/c");
  limit("/a/b/c", "cpu.max", "800000 100000");
  limit("/a/b", "cpu.max", "max 100000");
  limit("/a", "cpu.max", "300000 100000");
  limit("", "cpu.max", "500000 100000");
  EXPECT_EQ(granted(), 3u);
}

TEST_F(Quota, OfVersionOneIsFoundToo) {
  mount("cgroup", "/", "rw,cpu,cpuacct");
  join("5:memory:/elsewhere");
  join("4:cpu,cpuacct:/docker/1");
  join("0::/");
  limit("/docker/1", "cpu.cfs_quota_us", "50000");
  limit("/docker/1", "cpu.cfs_period_us", "100000");
  limit("/docker", "cpu.cfs_quota_us", "-1");
  limit("/docker", "cpu.cfs_period_us", "100000");
  EXPECT_EQ(granted(), 1u);
}

// In a container the groups above its own are not to be seen, and its path names them all the same.
TEST_F(Quota, IsReadBelowTheGroupThatIsMounted) {
  mount("cgroup2", "/docker/1", "rw");
  join("0::/docker/1/inner");
  limit("/inner", "cpu.max", "200000 100000");
  EXPECT_EQ(granted(), 2u);
}

TEST_F(Quota, IsThatOfTheMountWhenTheGroupLiesOutside) {
  mount("cgroup2", "/", "rw");
  join("0::/../../other");
  limit("", "cpu.max", "400000 100000");
  EXPECT_EQ(granted(), 4u);
}

TEST_F(Quota, IsNoLimitWhereNoneIsTold) {
  EXPECT_EQ(granted(), unlimited) << "no files";
  mount("cgroup2", "/", "rw");
  join("0::/a");
  EXPECT_EQ(granted(), unlimited) << "no such group";
  limit("/a", "cpu.max", "max 100000");
  EXPECT_EQ(granted(), unlimited);
}

}  // namespace
