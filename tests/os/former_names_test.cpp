#include "support/runtime_fixture.hpp"

#include <ulexite/os/former_names.hpp>

#include <csignal>

// Names of before 0.1, which work until 0.2.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using ulexite::test::OneRuntimeTest;

class FormerNames : public OneRuntimeTest {
 protected:
  FormerNames() : OneRuntimeTest(2) {}
};

TEST_F(FormerNames, AreThoseOfOs) {
  run([] {
    const std::string path = testing::TempDir() + "ulexite_former_names." + std::to_string(::getpid());
    std::error_code error;
    ulexite::write_all(path, "a");
    ulexite::write_all(path, "b", error);
    ulexite::replace_file(path, "c", error);
    ulexite::replace_file(path, "d");
    EXPECT_EQ(ulexite::read_all(path), "d");
    EXPECT_EQ(ulexite::read_all(path, error), "d");
    ulexite::file opened(path, ulexite::open_mode::read | ulexite::open_mode::write, ulexite::default_permissions);
    EXPECT_EQ(opened.size(), 1u);
    int entries = 0;
    ulexite::walk(testing::TempDir(), [&](const ulexite::walk_entry&) { return ++entries == 0; }, {.recursive = false});
    EXPECT_EQ(entries, 1);
    const ulexite::process_output out = ulexite::output_of({.arguments = {"true"}, .err = ulexite::stdio::null});
    EXPECT_EQ(ulexite::to_string(out.status), "exit code 0");
    EXPECT_EQ(ulexite::standard_output().native_handle(), ulexite::os::standard_output().native_handle());
    const ulexite::signal_set signals{SIGUSR1};
    std::filesystem::remove(path);
  });
}

// Both namespaces have the names, but the same things.
TEST(FormerNamesOutside, AreNotAmbiguous) {
  using namespace ulexite;
  using namespace ulexite::os;
  EXPECT_EQ(default_permissions, static_cast<std::filesystem::perms>(0666));
  EXPECT_EQ(to_string(exit_status{}), ulexite::os::to_string(exit_status{}));
}

}  // namespace

#pragma GCC diagnostic pop
