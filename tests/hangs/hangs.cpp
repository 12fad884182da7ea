// hangs NAME: runs a hang in a child process, and looks for its words in the child's report. The child reports by
// itself, or on a request for a dump. hangs without a name lists them.

#include "hang.hpp"

#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ulexite::hangs {
namespace {

using namespace std::chrono_literals;

constexpr int bound = 60'000;  // ms, for a machine under load

[[noreturn]] void run_child(const hang& which, int to) {
  ::dup2(to, STDERR_FILENO);
  runtime rt({.threads = 2, .blocking_threads = 2});
  if (which.outside)
    std::thread([&] {
      for (;;) {
        std::this_thread::sleep_for(150ms);
        rt.dump(std::cerr);
      }
    }).detach();
  which.run(rt);
  std::_Exit(0);
}

// Whether the report has all of the words, in this order. A word that begins with the name of a fiber may be anywhere,
// because the order of waits that began at the same time is open.
bool has_words(const std::string& report, const hang& which) {
  std::size_t at = 0;
  for (const char* const word : which.words) {
    at = report.find(word, *word == '"' ? 0 : at);
    if (at == std::string::npos) return false;
    at += std::strlen(word);
  }
  return true;
}

// Reads until the words have come, the child is silent for too long, or it has ended.
std::string read_report(int from, const hang& which) {
  std::string report;
  for (pollfd readable{from, POLLIN, 0}; !has_words(report, which) && ::poll(&readable, 1, bound) > 0;) {
    char part[4096];
    const ssize_t got = ::read(from, part, sizeof part);
    if (got <= 0) break;
    report.append(part, static_cast<std::size_t>(got));
  }
  return report;
}

bool check(const hang& which) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) run_child(which, ends[1]);
  ::close(ends[1]);
  const std::string report = read_report(ends[0], which);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  if (has_words(report, which)) return true;
  std::cout << which.name << ": these words were expected, in this order:\n";
  for (const char* const word : which.words) std::cout << "  " << word << '\n';
  std::cout << "the report:\n" << report << '\n';
  return false;
}

}  // namespace
}  // namespace ulexite::hangs

int main(int argc, char** argv) {
  using namespace ulexite::hangs;
  bool found = argc == 1;
  for (const auto& list : {hangs_of_locks(), hangs_of_messages(), hangs_of_groups(), hangs_from_outside()})
    for (const hang& each : list) {
      if (argc == 1) std::puts(each.name);
      if (argc == 1 || std::strcmp(argv[1], each.name) != 0) continue;
      found = true;
      if (!check(each)) return 1;
    }
  if (!found) std::fprintf(stderr, "hangs: there is no hang named %s\n", argv[1]);
  return found ? 0 : 2;
}
