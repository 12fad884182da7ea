#include "support/watchdog.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace ulexite::test {
namespace {

const char* volatile what_hangs = "";
void (*volatile report_more)() = nullptr;

// The real stderr, though a test may capture it.
int console() {
  static const int fd = ::dup(STDERR_FILENO);
  return fd;
}

void write_text(const char* text) { [[maybe_unused]] const auto written = ::write(console(), text, std::strlen(text)); }

void on_alarm(int) {
  write_text("\nwatchdog: out of time: ");
  write_text(what_hangs);
  write_text("\n");
  ::dup2(console(), STDERR_FILENO);
  if (report_more) report_more();
  std::abort();
}

}  // namespace

watchdog::watchdog(const char* what, void (*report)(), unsigned seconds) {
  console();
  what_hangs = what;
  report_more = report;
  std::signal(SIGALRM, on_alarm);
  ::alarm(seconds);
}

watchdog::~watchdog() {
  ::alarm(0);
  report_more = nullptr;
}

}  // namespace ulexite::test
