// Walks through directories.

#include "os/os_fixture.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/os/walk.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <map>
#include <semaphore>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::file;
using os::open_mode;
using os::walk;
using os::walk_entry;
using os::walk_options;
using namespace ulexite::test;
using std::filesystem::file_type;
namespace fs = std::filesystem;

class Walk : public OsTest {
 protected:
  // Directories a, a/b, a/b/c and files in them, made without the library.
  Walk() {
    fs::create_directories(scratch_ / "a/b/c");
    for (const char* name : {"x", "a/y", "a/b/c/z"}) file_of(name, 3);
  }

  void file_of(const fs::path& name, std::size_t size) const {
    file(scratch_ / name, open_mode::write | open_mode::create).write_at(std::string(size, '.'), 0);
  }

  // The entries by their paths below the root.
  std::map<std::string, walk_entry> entries(walk_options options = {}) const {
    std::map<std::string, walk_entry> found;
    walk(
        scratch_.path(),
        [&](const walk_entry& each) {
          const auto name = each.path.lexically_relative(scratch_.path()).string();
          EXPECT_TRUE(found.emplace(name, each).second) << name << " came twice";
        },
        options);
    return found;
  }

  const scratch_directory scratch_;
};
ULEXITE_TEST_WORKERS(Walk);

TEST_P(Walk, FindsAllBelow) {
  in_runtime([&] {
    const auto found = entries();
    ASSERT_EQ(found.size(), 6u);
    EXPECT_EQ(found.at("x").type, file_type::regular);
    EXPECT_EQ(found.at("x").size, 3u);
    EXPECT_EQ(found.at("x").depth, 1u);
    EXPECT_EQ(found.at("a").type, file_type::directory);
    EXPECT_EQ(found.at("a/b/c/z").depth, 4u);
    for (const auto& [name, each] : found) EXPECT_FALSE(each.error) << name;
  });
}

TEST_P(Walk, DirectoriesComeBeforeWhatIsInThem) {
  in_runtime([&] {
    std::vector<fs::path> directories{scratch_.path()};
    walk(scratch_.path(), [&](const walk_entry& each) {
      EXPECT_EQ(std::ranges::count(directories, each.path.parent_path()), 1) << each.path;
      if (each.type == file_type::directory) directories.push_back(each.path);
    });
    EXPECT_EQ(directories.size(), 4u);
  });
}

TEST_P(Walk, StaysOnTheFirstLevelIfAsked) {
  in_runtime([&] {
    const auto found = entries({.recursive = false});
    EXPECT_EQ(found.size(), 2u);
    EXPECT_TRUE(found.contains("a") && found.contains("x"));
  });
}

TEST_P(Walk, LinksAreFollowedOnlyIfAsked) {
  in_runtime([&] {
    const scratch_directory elsewhere;
    file(elsewhere / "far", open_mode::write | open_mode::create);
    fs::create_symlink(elsewhere.path(), scratch_ / "link");
    fs::create_symlink("nowhere", scratch_ / "dangling");
    auto found = entries();
    EXPECT_EQ(found.at("link").type, file_type::symlink);
    EXPECT_FALSE(found.contains("link/far"));
    found = entries({.follow_symlinks = true});
    EXPECT_EQ(found.at("link").type, file_type::directory);
    EXPECT_EQ(found.at("link/far").type, file_type::regular);
    EXPECT_EQ(found.at("dangling").type, file_type::symlink);
    std::size_t count = 0;
    walk(scratch_ / "link", [&](const walk_entry&) { ++count; });  // the root itself may be one
    EXPECT_EQ(count, 1u);
  });
}

TEST_P(Walk, ACircleOfLinksIsToldAndEnds) {
  in_runtime([&] {
    fs::create_symlink(scratch_.path(), scratch_ / "a/b/back");
    const auto found = entries({.follow_symlinks = true});
    EXPECT_EQ(found.at("a/b/back").error, std::errc::too_many_symbolic_link_levels);
    EXPECT_EQ(found.size(), 7u);
  });
}

TEST_P(Walk, AMissingOrWrongRootIsNamed) {
  in_runtime([&] {
    const auto missing = scratch_ / "missing";
    const auto nothing = [](const walk_entry&) {};
    EXPECT_EQ(code_of([&] { walk(missing, nothing); }), std::errc::no_such_file_or_directory);
    EXPECT_NE(message_of([&] { walk(missing, nothing); }).find(missing.string()), std::string::npos);
    EXPECT_EQ(code_of([&] { walk(scratch_ / "x", nothing); }), std::errc::not_a_directory);
    EXPECT_EQ(code_of([&] { walk("", nothing); }), std::errc::no_such_file_or_directory);
    const std::string with_nul("/tmp\0/x", 7);
    EXPECT_EQ(code_of([&] { walk(with_nul, nothing); }), std::errc::invalid_argument);
    EXPECT_NE(message_of([&] { walk(with_nul, nothing); }).find("/tmp\\0/x"), std::string::npos);
  });
}

// A test that runs as root may read everything, and gets no error.
TEST_P(Walk, WhatCannotBeReadIsToldAndTheWalkGoesOn) {
  in_runtime([&] {
    const auto locked = scratch_ / "a/b";
    fs::permissions(locked, fs::perms::none);
    std::size_t errors = 0, others = 0;
    walk(scratch_.path(), [&](const walk_entry& each) {
      if (!each.error) return void(++others);
      ++errors;
      EXPECT_EQ(each.path, locked);
      EXPECT_EQ(each.error, std::errc::permission_denied);
    });
    fs::permissions(locked, fs::perms::owner_all);
    EXPECT_EQ(errors, ::geteuid() == 0 ? 0u : 1u);
    EXPECT_EQ(others, ::geteuid() == 0 ? 6u : 4u);
  });
}

TEST_P(Walk, ThousandsOfEntriesEachComeOnce) {
  in_runtime([&] {
    constexpr std::size_t folders = 20, files = 100;
    for (std::size_t i = 0; i < folders; ++i) {
      const auto folder = scratch_ / ("many" + std::to_string(i));
      fs::create_directory(folder);
      for (std::size_t k = 0; k < files; ++k) fs::create_symlink("x", folder / std::to_string(k));
    }
    const std::size_t expected = 6 + folders * (files + 1);
    EXPECT_EQ(entries().size(), expected);
    task_group all;
    for (int i = 0; i < 4; ++i) all.spawn([&] { EXPECT_EQ(entries().size(), expected); });
    all.wait();
  });
}

TEST_P(Walk, VisitorsMayEndIt) {
  in_runtime([&] {
    std::size_t seen = 0;
    walk(scratch_.path(), [&](const walk_entry&) { return ++seen < 3; });
    EXPECT_EQ(seen, 3u);
    EXPECT_THROW(walk(scratch_.path(), [](const walk_entry&) { throw std::runtime_error("enough"); }),
                 std::runtime_error);
  });
}

TEST_P(Walk, IsCancelledBetweenBatches) {
  in_runtime([&] {
    for (int i = 0; i < 600; ++i) fs::create_symlink("x", scratch_ / std::to_string(i));
    std::binary_semaphore inside(0);
    std::size_t seen = 0;
    auto walker = spawn([&] {
      walk(scratch_.path(), [&](const walk_entry&) {
        if (++seen > 1) return;
        inside.release();
        wait_until([] { return this_fiber::stop_requested(); });
      });
    });
    wait_until([&] { return inside.try_acquire(); });
    walker.request_stop();
    EXPECT_THROW(walker.get(), operation_cancelled);
    EXPECT_GT(seen, 0u);
    EXPECT_LT(seen, 606u);
  });
}

}  // namespace
