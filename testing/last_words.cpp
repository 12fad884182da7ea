// The handlers make only async-signal-safe calls, because they may have interrupted any function.

#include <ulexite/fiber/report_line.hpp>
#include <ulexite/testing/driver.hpp>
#include <ulexite/testing/last_words.hpp>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <unistd.h>

extern "C" {
[[gnu::weak]] void __sanitizer_set_death_callback(void (*)());
[[gnu::weak]] int LLVMFuzzerRunDriver(int*, char***, int (*)(const std::uint8_t*, std::size_t));
}

namespace ulexite::testing {
namespace {

constexpr std::array deaths{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

constinit std::mutex guard;  // of the rest
constinit std::size_t living = 0;
constinit std::array<struct sigaction, deaths.size()> before{};

// An abort may follow a sanitizer's report. They are one death.
void tell() noexcept {
  static constinit thread_local bool told = false;
  const auto* const run = static_cast<const driver*>(detail::this_controller());
  if (!run || told) return;
  told = true;
  constexpr std::size_t longest_choice = 48;
  detail::report_line line;
  line.text("ulexite: the process ends in a run of ulexite::testing\nto repeat it: ULEXITE_SCHEDULE=list:");
  const char* between = "";
  for (std::size_t i = 0; i < run->made().size(); ++i) {
    if (run->made()[i] == 0) continue;
    if (line.room() < longest_choice) line.flush();
    line.text(between).number(i).text("=").number(run->made()[i]);
    between = ",";
  }
  line.write();
}

// A fault happens again when the handler returns; what was sent is sent again.
void on_death(int number, siginfo_t* info, void*) noexcept {
  tell();
  for (std::size_t i = 0; i < deaths.size(); ++i)
    if (deaths[i] == number) ::sigaction(number, &before[i], nullptr);
  if (info->si_code <= 0) ::raise(number);
}

}  // namespace

// A fuzzer has a callback of its own. The library's handlers, which name the fiber, come after these.
last_words::last_words() noexcept {
  detail::install_death_reports();
  const std::lock_guard lock(guard);
  if (living++ > 0) return;
  if (__sanitizer_set_death_callback && !LLVMFuzzerRunDriver) __sanitizer_set_death_callback(tell);
  struct sigaction ours{};
  ours.sa_sigaction = on_death;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < deaths.size(); ++i) ::sigaction(deaths[i], &ours, &before[i]);
}

// What another part of the program has installed since then stays.
last_words::~last_words() {
  const std::lock_guard lock(guard);
  if (--living > 0) return;
  for (std::size_t i = 0; i < deaths.size(); ++i) {
    struct sigaction now{};
    if (::sigaction(deaths[i], nullptr, &now) == 0 && now.sa_sigaction == on_death)
      ::sigaction(deaths[i], &before[i], nullptr);
  }
}

}  // namespace ulexite::testing
