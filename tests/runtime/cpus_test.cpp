// How many workers the machine's limits allow.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/threads/cpus.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using detail::quota_processors;

// A folder that looks like a process's folder, and a folder that looks like its control groups.
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
  // Instead of what it was.
  void change(const std::string& group, const std::string& file, const std::string& text) {
    std::ofstream(groups_.string() + group + "/" + file) << text << "\n";
  }
  [[nodiscard]] std::string process() const { return folder_.string(); }

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

// A running runtime has fewer workers when the quota is lowered, and more when it is raised again.
TEST_F(Quota, IsFollowed) {
  mount("cgroup2", "/", "rw");
  join("0::/a");
  limit("/a", "cpu.max", "max 100000");
  runtime rt({.threads = 4});
  detail::runtime_state& state = detail::state_of(rt);
  const auto occupy = [&] {
    rt.run([] {
      std::vector<join_handle<>> all;
      for (int i = 0; i < 12; ++i) all.push_back(spawn([] { std::this_thread::sleep_for(5ms); }));
      for (auto& each : all) each.get();
    });
  };
  occupy();
  EXPECT_GT(rt.metrics().workers, 1u);
  change("/a", "cpu.max", "100000 100000");
  state.threads.apply_quota(process());
  wait_until([&] { return rt.metrics().workers == 1; });
  occupy();
  EXPECT_EQ(rt.metrics().workers, 1u);
  change("/a", "cpu.max", "900000 100000");
  state.threads.apply_quota(process());
  EXPECT_EQ(state.parker.limit(), 4u) << "no more than at the start";
  occupy();
  EXPECT_GT(rt.metrics().workers, 1u);
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
