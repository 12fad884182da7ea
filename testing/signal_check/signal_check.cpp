// Linked into a program, it finds calls of the C interface in signal handlers. They return ULX_EUSAGE, or do nothing,
// and report this on stderr. Link ulexite::signal_check. It replaces sigaction and signal, and puts a function around
// each handler.
//
// Handlers of SIGSEGV and similar signals are not changed, because they may leave by longjmp. All other handlers must
// return: after a siglongjmp all later calls of that thread are refused.

#include <ulexite/interop/c/in_handler.hpp>

#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace {

// Each number's handler is set by one thread, before its signal comes.
constexpr auto relaxed = std::memory_order_relaxed;

using action = void (*)(int, siginfo_t*, void*);
constinit std::array<std::atomic<action>, NSIG> handlers;  // the program's, by number
constinit thread_local int depth = 0;

void run(int number, siginfo_t* info, void* context) {
  ++depth;
  handlers[static_cast<std::size_t>(number)].load(relaxed)(number, info, context);
  --depth;
}

bool may_jump(int number) noexcept {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP;
}

bool is_function(const struct sigaction& given) noexcept {
  return given.sa_handler != SIG_DFL && given.sa_handler != SIG_IGN && given.sa_handler != SIG_ERR;
}

[[gnu::constructor]] void begin_to_ask() {
  ulexite::detail::c::runs_handler.store([]() noexcept { return depth > 0; }, relaxed);
}

}  // namespace

extern "C" {

int sigaction(int number, const struct sigaction* wanted, struct sigaction* former) noexcept {
  static const auto own = reinterpret_cast<decltype(&sigaction)>(::dlsym(RTLD_NEXT, "sigaction"));
  if (number <= 0 || number >= NSIG || may_jump(number)) return own(number, wanted, former);
  std::atomic<action>& function = handlers[static_cast<std::size_t>(number)];
  const action before = function.load(relaxed);
  struct sigaction around;
  if (wanted) {
    around = *wanted;
    if (is_function(*wanted)) {
      // A handler with one parameter ignores the others, which are in registers.
      function.store(wanted->sa_sigaction, relaxed);
      around.sa_sigaction = run;
      around.sa_flags |= SA_SIGINFO;
    }
  }
  const int result = own(number, wanted ? &around : nullptr, former);
  if (result != 0) {
    function.store(before, relaxed);
  } else if (former && former->sa_sigaction == run) {
    former->sa_sigaction = before;
  }
  return result;
}

sighandler_t signal(int number, sighandler_t function) noexcept {
  struct sigaction wanted{}, former;
  wanted.sa_handler = function;
  wanted.sa_flags = SA_RESTART;
  return sigaction(number, &wanted, &former) == 0 ? former.sa_handler : SIG_ERR;
}

// In strict C11 the C library replaces `signal` by this function: the handler is called once.
sighandler_t __sysv_signal(int number, sighandler_t function) noexcept {
  struct sigaction wanted{}, former;
  wanted.sa_handler = function;
  wanted.sa_flags = SA_RESETHAND | SA_NODEFER;
  return sigaction(number, &wanted, &former) == 0 ? former.sa_handler : SIG_ERR;
}
}
