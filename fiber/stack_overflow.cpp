// The handler makes only async-signal-safe calls, because it may have interrupted any function, even malloc or printf.
//
// Pairings
//   A  the thread that puts a fiber on a stack stores owner, release  ->  the report loads it, acquire: it sees the
//      complete identity. (Usually both are one thread, but any thread can hit the guard of a foreign stack.)

#include <ulexite/base/panic.hpp>
#include <ulexite/fiber/report_line.hpp>
#include <ulexite/fiber/stack_overflow.hpp>

#include <ulexite/fiber/stack_guard.hpp>
#include <ulexite/fiber/stack_slab.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>

#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace ulexite::detail {
namespace {

// "in fiber #7 'name' (stack of 65536 bytes, spawned at file.cpp:12)"
void describe(report_line& line, const stack& stack) noexcept {
  const fiber_identity* const owner = stack.owner.load(std::memory_order_acquire);  // A
  if (owner) {
    line.text("in fiber #").number(owner->id);
    if (owner->name) line.text(" '").text(owner->name).text("'");
  } else {
    line.text("by no fiber");
  }
  line.text(" (stack of ").number(stack.size()).text(" bytes");
  if (owner && owner->where.known() && owner->where.in_source()) {
    const std::source_location where = owner->where.source();
    line.text(", spawned at ").text(where.file_name()).text(":").number(where.line());
  }
  line.text(")");
}

using action = struct sigaction;

// The earlier actions, written once before the handler can run.
action earlier_segv{};
action earlier_bus{};

void set_default(int signal) noexcept {
  action plain{};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
}

// The stack of the fiber for which this thread makes a call. The handler of a fault reads it, so it is volatile, and in
// the thread's own block, which needs no allocation.
[[gnu::tls_model("initial-exec")]] constinit thread_local const stack* volatile calling = nullptr;

// Reports the fiber in which `what` happened, if the stack pointer `top` is on a fiber's stack, or this thread makes a
// call for a fiber.
bool name_fiber(report_line& line, const char* what, const void* top) noexcept {
  const stack* const standing = stack_slab::holding(top);
  const stack* const found = standing ? standing : calling;
  if (!found || !found->owner.load(std::memory_order_acquire)) return false;  // A
  line.text("ulexite: ").text(what).text(" ");
  describe(line, *found);
  if (!standing) line.text(", in on_thread_stack");
  return true;
}

const void* stack_pointer(const void* interrupted) noexcept {
  const mcontext_t& registers = static_cast<const ucontext_t*>(interrupted)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(registers.gregs[REG_RSP]);
#else
  return reinterpret_cast<const void*>(registers.sp);
#endif
}

// Passes a fault that is not ours to the earlier handler. It does not apply that handler's signal mask. The earlier
// handler may leave by an exception or a jump.
void pass_on(int signal, siginfo_t* info, void* context) {
  const action& earlier = signal == SIGSEGV ? earlier_segv : earlier_bus;
  const bool sent = info->si_code <= 0;  // sent by kill(): no instruction would fault again
  if (earlier.sa_handler == SIG_IGN && sent) return;
  if (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN) {
    set_default(signal);
    if (sent) {
      ::raise(signal);  // pending until the handler returns
      return;
    }
    report_line line;
    if (name_fiber(line, signal == SIGSEGV ? "SIGSEGV" : "SIGBUS", stack_pointer(context)))
      line.text(": address 0x").number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16).write();
  } else if (earlier.sa_flags & SA_SIGINFO) {
    earlier.sa_sigaction(signal, info, context);
  } else {
    earlier.sa_handler(signal);
  }
}

// After a report it returns. Then the instruction faults again and the default action runs.
void on_fault(int signal, siginfo_t* info, void* context) {
  const stack* const overflown = info->si_code > 0 ? stack_slab::guarded(info->si_addr) : nullptr;
  if (!overflown) return pass_on(signal, info, context);
  report_line line;
  line.text("ulexite: stack overflow ");
  describe(line, *overflown);
  line.text(": address 0x").number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16).write();
  set_default(signal);
}

// Makes two calls, because the earlier action must be stored before our handler can run.
void install_for(int signal, action& earlier) {
  action ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (::sigaction(signal, nullptr, &earlier) != 0 || ::sigaction(signal, &ours, nullptr) != 0) {
    throw std::system_error(errno, std::system_category(), "cannot install the handler of stack overflows");
  }
}

std::terminate_handler earlier_terminate = nullptr;  // written once, before ours can run

[[noreturn]] void on_terminate() {
  report_line line;
  if (name_fiber(line, "std::terminate", __builtin_frame_address(0))) line.write();
  if (earlier_terminate) earlier_terminate();
  std::abort();
}

// 64 KiB, or the space for the processor's registers, which are saved there, with room for an earlier handler.
std::size_t signal_stack_size() noexcept {
  constexpr std::size_t kib = 1024;
  const auto smallest = static_cast<std::size_t>(::getauxval(AT_MINSIGSTKSZ)) + 32 * kib;
  const std::size_t size = std::max({64 * kib, smallest, static_cast<std::size_t>(SIGSTKSZ)});
  return (size + page_size() - 1) / page_size() * page_size();
}

}  // namespace

void install_death_reports() {
  [[maybe_unused]] static const bool once = [] {
    install_for(SIGSEGV, earlier_segv);
    install_for(SIGBUS, earlier_bus);
    earlier_terminate = std::get_terminate();
    std::set_terminate(on_terminate);
    return true;
  }();
}

void set_call_for(const stack* caller) noexcept { calling = caller; }

// A worker without a signal stack still runs fibers.
signal_stack::signal_stack() noexcept {
  if (!make())
    warn("a thread has no signal stack (errno %d): a stack overflow of its fibers would not be reported", errno);
}

bool signal_stack::make() noexcept {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) != 0) return false;
  if (!(present.ss_flags & SS_DISABLE)) return true;

  size_ = signal_stack_size() + page_size();
  void* const memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  stack_t ours{};
  ours.ss_sp = static_cast<char*>(memory) + page_size();
  ours.ss_size = size_ - page_size();
  if (::mprotect(memory, page_size(), PROT_NONE) != 0 || ::sigaltstack(&ours, nullptr) != 0) {
    const int error = errno;
    ::munmap(memory, size_);
    errno = error;
    return false;
  }
  memory_ = memory;
  return true;
}

// If other code has installed another signal stack since then, that one stays.
signal_stack::~signal_stack() {
  if (!memory_) return;
  stack_t present{};
  if (::sigaltstack(nullptr, &present) == 0 && present.ss_sp == static_cast<char*>(memory_) + page_size()) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  ::munmap(memory_, size_);
}

bool canary_is_broken(const stack& stack) noexcept { return !stack_canary_intact(stack); }

void report_broken_canary(const stack& stack) noexcept {
  report_line line;
  line.text("ulexite: stack overflow found ");
  describe(line, stack);
  line.text(": the guard word was overwritten").write();
  std::abort();
}

}  // namespace ulexite::detail
