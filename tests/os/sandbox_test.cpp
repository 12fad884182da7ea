// Files in a sandbox that refuses the newer system calls with EPERM.

#include "os/os_fixture.hpp"
#include "support/seccomp.hpp"

#include <ulexite/os/file.hpp>

#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::file;
using os::open_mode;
using namespace ulexite::test;

constexpr int sandbox_refused = 77;

[[noreturn]] void read_and_write(const std::filesystem::path& path) {
  if (!refuse_system_call(SYS_preadv2, EPERM) || !refuse_system_call(SYS_pwritev2, EPERM)) std::_Exit(sandbox_refused);
  std::string text(5, ' ');
  runtime({.threads = 2}).run([&] {
    using enum open_mode;
    file both(path, read | write | create);
    both.write_at("hello", 0);
    both.write_at("H", 0);
    for (int times = 0; times < 3; ++times) (void)both.read_at(text.data(), text.size(), 0);
  });
  std::_Exit(text == "Hello" ? 0 : 1);
}

bool exited_well(int status) {
  return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == sandbox_refused);
}

TEST(Sandbox, FilesAreReadAndWrittenWithoutPreadv2) {
  const scratch_directory scratch;
  use_threadsafe_death_tests();
  EXPECT_EXIT(read_and_write(scratch / "file"), exited_well, "");
}

}  // namespace
