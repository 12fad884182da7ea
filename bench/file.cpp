// Operations of files beside the bare system calls, in turns: file DIR ROUNDS
//
// Prints the processor time of each operation in nanoseconds, of the user and the system, and the ratio.

#include <ulexite.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using ulexite::os::file;
using ulexite::os::open_mode;

// Of all threads of the process, in nanoseconds.
double processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto ns = [](const timeval& time) {
    return 1e9 * static_cast<double>(time.tv_sec) + 1e3 * static_cast<double>(time.tv_usec);
  };
  return ns(used.ru_utime) + ns(used.ru_stime);
}

double time_of(const std::function<void()>& operation, int times) {
  const double begin = processor_time();
  for (int i = 0; i < times; ++i) operation();
  return (processor_time() - begin) / times;
}

void expect(bool holds) {
  if (!holds) throw std::runtime_error("a call failed");
}

struct pair {
  const char* name;
  std::function<void()> ours, bare;
};

void measure(const std::filesystem::path& folder, int rounds) {
  const std::string path = (folder / "ulexite_bench_file").string();
  file both(path, open_mode::read | open_mode::write | open_mode::create | open_mode::truncate);
  const int fd = both.native_handle();
  char page[4096] = {};
  both.write_at(page, sizeof page, 0);
  const ulexite::os::directory inside(folder);
  ulexite::os::output_stream out = ulexite::os::output_stream::share(fd, path);
  const std::vector<pair> pairs = {
      {"read_at 4 KiB", [&] { both.read_at(page, sizeof page, 0); },
       [&] { expect(::pread(fd, page, sizeof page, 0) == sizeof page); }},
      {"write_at 4 KiB", [&] { both.write_at(page, sizeof page, 0); },
       [&] { expect(::pwrite(fd, page, sizeof page, 0) == sizeof page); }},
      {"stream 64 B", [&] { out.write_some(page, 64); }, [&] { expect(::write(fd, page, 64) == 64); }},
      {"size", [&] { expect(both.size() >= sizeof page); },
       [&] {
         struct stat status{};
         expect(::fstat(fd, &status) == 0);
       }},
      {"open to read", [&] { const file opened(path); }, [&] { ::close(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }},
      {"open to write", [&] { const file opened(path, open_mode::write); },
       [&] { ::close(::open(path.c_str(), O_WRONLY | O_CLOEXEC)); }},
      {"open in directory", [&] { (void)inside.open("ulexite_bench_file"); },
       [&] { ::close(::openat(inside.native_handle(), "ulexite_bench_file", O_RDONLY | O_CLOEXEC)); }},
  };
  std::printf("%-17s %10s %10s %7s\n", "operation", "file, ns", "bare, ns", "ratio");
  for (const pair& one : pairs) {
    double ours = 0, bare = 0;
    for (int round = 0; round < rounds; ++round) {
      constexpr int times = 2000;
      ours += time_of(one.ours, times) / rounds;
      bare += time_of(one.bare, times) / rounds;
    }
    std::printf("%-17s %10.0f %10.0f %7.2f\n", one.name, ours, bare, ours / bare);
  }
  std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DIR ROUNDS\n", argv[0]);
    return 2;
  }
  try {
    ulexite::runtime({.threads = 1}).run([&] { measure(argv[1], std::atoi(argv[2])); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "file: %s\n", e.what());
    return 1;
  }
  return 0;
}
