#include <ulexite/fiber/context.hpp>

#include <cerrno>
#include <cstring>

#include <cxxabi.h>
#include <boost/context/detail/fcontext.hpp>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#if ULEXITE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if ULEXITE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace ulexite::detail {

namespace fcontext = boost::context::detail;

switch_thread::switch_thread() noexcept
    : exceptions(reinterpret_cast<exception_globals*>(abi::__cxa_get_globals())), error(&errno) {}

namespace {

// Handed from the computation that leaves to the one that arrives, on the stack of the former.
struct passage {
  context* from;
  switch_thread* thread;
  void (*entry)(switch_thread&);  // of a computation that starts
};

#if defined(__x86_64__)

// jump_fcontext saves MXCSR in the first word of the frame and loads the target's. Where two computations differ in no
// more than the sticky exception flags, that load costs 55 ns on some processors; so the flags, which the ABI lets a
// call change, are made equal beforehand. Whether the word is where we think is tried once.
constexpr std::uint32_t sticky_flags = 0x3f;

std::uint32_t first_word = 0;

void bounce(fcontext::transfer_t arrival) {
  std::memcpy(&first_word, arrival.fctx, sizeof first_word);
  fcontext::jump_fcontext(arrival.fctx, nullptr);
}

bool first_word_is_mxcsr() noexcept {
#if ULEXITE_ASAN || ULEXITE_TSAN
  return false;  // they want every switch announced, and nobody measures there
#else
  alignas(16) static char room[4096];
  const unsigned int before = _mm_getcsr();
  constexpr unsigned int pattern = 0x0015;  // three flags that are unlikely to be set by chance
  _mm_setcsr((before & ~sticky_flags) | pattern);
  const unsigned int expected = _mm_getcsr();
  fcontext::jump_fcontext(fcontext::make_fcontext(room + sizeof room, sizeof room, bounce), nullptr);
  _mm_setcsr(before);
  return first_word == expected;
#endif
}

const bool flags_can_be_aligned = first_word_is_mxcsr();

void align_floating_point_flags(void* frame) noexcept {
  if (!flags_can_be_aligned) return;
  auto* const word = static_cast<std::uint32_t*>(frame);
  *word = (*word & ~sticky_flags) | (_mm_getcsr() & sticky_flags);
}

#else
void align_floating_point_flags(void*) noexcept {}
#endif

// What both ends of a switch do on arrival: the one that left is described completely only now.
switch_thread& arrive(fcontext::transfer_t arrival, [[maybe_unused]] void* own_fake_stack) noexcept {
  const passage& passage = *static_cast<detail::passage*>(arrival.data);
  passage.from->frame = arrival.fctx;
#if ULEXITE_ASAN
  __sanitizer_finish_switch_fiber(own_fake_stack, &passage.from->low, &passage.from->size);
#endif
  return *passage.thread;
}

}  // namespace
}  // namespace ulexite::detail

extern "C" {

[[noreturn]] void ulexite_context_main(boost::context::detail::transfer_t arrival) noexcept {
  using namespace ulexite::detail;
  const auto entry = static_cast<const passage*>(arrival.data)->entry;
  entry(arrive(arrival, nullptr));
  __builtin_trap();
}

// The outermost frame of every fiber: its return address is declared undefined, which is where an unwinder stops.
// make_fcontext's own frame has no such mark in Boost 1.81, and unwinders ran off its end.
void ulexite_context_entry(boost::context::detail::transfer_t);
}

#if defined(__x86_64__)
asm(R"(
.pushsection .text
.globl ulexite_context_entry
.hidden ulexite_context_entry
.type ulexite_context_entry, @function
ulexite_context_entry:
  .cfi_startproc
  .cfi_undefined rip
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call ulexite_context_main
  ud2
  .cfi_endproc
.size ulexite_context_entry, .-ulexite_context_entry
.popsection
)");
#elif defined(__aarch64__)
asm(R"(
.pushsection .text
.globl ulexite_context_entry
.hidden ulexite_context_entry
.type ulexite_context_entry, @function
ulexite_context_entry:
  .cfi_startproc
  .cfi_undefined x30
  bl ulexite_context_main
  brk #1
  .cfi_endproc
.size ulexite_context_entry, .-ulexite_context_entry
.popsection
)");
#else
#error "ulexite runs on x86-64 and aarch64"
#endif

namespace ulexite::detail {
namespace {

// The departing side. Everything that the thread holds for this computation is kept in this frame meanwhile.
switch_thread& jump(context& from, void* target, void (*entry)(switch_thread&), switch_thread& thread,
                    departure departure) noexcept {
  passage passage{&from, &thread, entry};
  if (departure == departure::final) {
    fcontext::jump_fcontext(target, &passage);
    __builtin_trap();  // resumed although final
  }
  const int error = *thread.error;
  const switch_thread::exception_globals exceptions = *thread.exceptions;
  const bool handling = exceptions.caught != nullptr || exceptions.uncaught != 0;
  if (handling) *thread.exceptions = {};

#if ULEXITE_ASAN
  void* const* const own_fake_stack = &from.fake_stack;
#else
  void* const none = nullptr;
  void* const* const own_fake_stack = &none;
#endif
  const auto arrival = fcontext::jump_fcontext(target, &passage);
  switch_thread& now = arrive(arrival, *own_fake_stack);
  if (handling) *now.exceptions = exceptions;  // whoever left just now has left them empty
  *now.error = error;
  return now;
}

#if ULEXITE_ASAN
// A final departure passes no place for the fake stack, which frees it.
void** fake_stack_of(context& from, departure departure) noexcept {
  return departure == departure::final ? nullptr : &from.fake_stack;
}
#endif

}  // namespace

switch_thread& start_context(context& from, stack& stack, unsigned colour, void (*entry)(switch_thread&),
                             switch_thread& thread, departure departure) noexcept {
  char* const top = stack.high - (colour % 16) * 128;
#if ULEXITE_ASAN
  __asan_unpoison_memory_region(stack.low, stack.size());  // of frames that its last user never returned from
  __sanitizer_start_switch_fiber(fake_stack_of(from, departure), stack.low, stack.size());
#endif
#if ULEXITE_TSAN
  if (!stack.sanitizer) stack.sanitizer = __tsan_create_fiber(0);
  from.sanitizer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stack.sanitizer, 0);
#endif
  const auto frame = fcontext::make_fcontext(top, static_cast<std::size_t>(top - stack.low), ulexite_context_entry);
  align_floating_point_flags(frame);
  return jump(from, frame, entry, thread, departure);
}

switch_thread& switch_context(context& from, context& to, switch_thread& thread, departure departure) noexcept {
#if ULEXITE_ASAN
  __sanitizer_start_switch_fiber(fake_stack_of(from, departure), to.low, to.size);
#endif
#if ULEXITE_TSAN
  from.sanitizer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
  align_floating_point_flags(to.frame);
  return jump(from, to.frame, nullptr, thread, departure);
}

void forget_context([[maybe_unused]] stack& stack) noexcept {
#if ULEXITE_TSAN
  if (stack.sanitizer) __tsan_destroy_fiber(stack.sanitizer);
  stack.sanitizer = nullptr;
#endif
}

}  // namespace ulexite::detail
