// Files in a sandbox that refuses the newer system calls with EPERM.

#include "os/os_fixture.hpp"

#include <ulexite/os/file.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <iterator>

namespace {

using namespace ulexite;
using namespace ulexite::test;

constexpr int sandbox_refused = 77;

// For the calling process, from now on. False if the system does not allow it.
bool refuse_preadv2() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void read_and_write(const std::filesystem::path& path) {
  if (!refuse_preadv2()) std::_Exit(sandbox_refused);
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
