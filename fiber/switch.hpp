#pragma once

// The switch itself, in one piece. It is inlined into its few callers. After a switch the processor's return-address
// predictor holds the other computation's calls. So each function that returns on the way out costs a misprediction.
// Without inlining there were four, half of the cost of a switch.

#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/jump.hpp>

#if ULEXITE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if ULEXITE_TSAN
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#endif

namespace ulexite::detail {

enum class departure : bool { returns, final };

// Passed from the leaving computation to the arriving one, on the stack of the leaving one.
struct transfer {
  context* from;
  switch_thread* thread;
  void (*entry)(switch_thread&);  // of a computation that starts
  floating_controls floating;
};

// The steps of an arrival: only now is the description of the computation that left complete.
inline switch_thread& arrive(arrival arrival, floating_controls own, [[maybe_unused]] void* own_fake_stack) noexcept {
  const transfer& transfer = *static_cast<detail::transfer*>(arrival.data);
  transfer.from->frame = arrival.frame;
  if (!(transfer.floating == own)) [[unlikely]]
    own.apply();
#if ULEXITE_ASAN
  __sanitizer_finish_switch_fiber(own_fake_stack, &transfer.from->low, &transfer.from->size);
#endif
  return *transfer.thread;
}

#if ULEXITE_ASAN
// Leaves a stack for good, after the announcement. The announcement has freed AddressSanitizer's fake stack
// (detect_stack_use_after_return), which has the frames of the callers. Frames of new calls are on the real stack.
[[noreturn, gnu::noinline]] inline void exit_stack(void* target, void (*entry)(switch_thread&),
                                                   switch_thread& thread) noexcept {
  context from;
  transfer transfer{&from, &thread, entry, thread.floating};
  thread.floating.restore();
  jump(target, &transfer);
  __builtin_trap();  // resumed although final
}
#endif

// The leaving side. This frame keeps the state that the thread holds for this computation.
[[gnu::always_inline]] inline switch_thread& switch_out(context& from, void* target, void (*entry)(switch_thread&),
                                                        switch_thread& thread, departure departure) noexcept {
#if ULEXITE_ASAN
  if (departure == departure::final) exit_stack(target, entry, thread);
#endif
  const bool final = departure == departure::final;
  transfer transfer{&from, &thread, entry, final ? thread.floating : floating_controls::current(thread.floating)};
  if (final) {
    thread.floating.restore();
    jump(target, &transfer);
    __builtin_trap();  // resumed although final
  }
  const int error = *thread.error;
  const switch_thread::exception_globals exceptions = *thread.exceptions;
  const bool handling = exceptions.caught != nullptr || exceptions.uncaught != 0;
  if (handling) *thread.exceptions = {};

  const arrival arrival = jump(target, &transfer);
#if ULEXITE_ASAN
  switch_thread& now = arrive(arrival, transfer.floating, from.fake_stack);
#else
  switch_thread& now = arrive(arrival, transfer.floating, nullptr);
#endif
  if (handling) *now.exceptions = exceptions;  // the computation that has just left has emptied them
  *now.error = error;
  return now;
}

// Announces a switch to the sanitizers. A final departure passes no place for the fake stack, which frees it. Inlined,
// because a function's exit must be reported to the ThreadSanitizer fiber of its entry.
[[gnu::always_inline]] inline void announce_switch([[maybe_unused]] context& from, [[maybe_unused]] const void* low,
                                                   [[maybe_unused]] std::size_t size, [[maybe_unused]] void* sanitizer,
                                                   [[maybe_unused]] departure departure) noexcept {
#if ULEXITE_ASAN
  __sanitizer_start_switch_fiber(departure == departure::final ? nullptr : &from.fake_stack, low, size);
#endif
#if ULEXITE_TSAN
  from.sanitizer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer, 0);
#endif
}

// Saves the running computation in `from`, and starts entry(thread) on `stack`. Stacks with equal tops would use the
// same cache lines, so the top is shifted by `stack_offset`. `entry` must end in a final switch. Otherwise as
// switch_context.
[[gnu::always_inline]] inline switch_thread& start_context(context& from, stack& stack, unsigned stack_offset,
                                                           void (*entry)(switch_thread&), switch_thread& thread,
                                                           departure departure = departure::returns) noexcept {
  char* const top = stack.high - (stack_offset % 16) * 128;
#if ULEXITE_ASAN
  __asan_unpoison_memory_region(stack.low, stack.size());  // of frames of its last user that never returned
#endif
#if ULEXITE_TSAN
  if (!stack.sanitizer) stack.sanitizer = __tsan_create_fiber(0);
#endif
  announce_switch(from, stack.low, stack.size(), stack.sanitizer, departure);
  void* const frame = make_frame(top, static_cast<std::size_t>(top - stack.low));
  return switch_out(from, frame, entry, thread, departure);
}

// Saves the running computation in `from`, and continues in `to`. Returns when a thread switches to `from`; returns
// this thread, which may be another one. errno, the exceptions being handled and the floating-point control words stay
// with the computation. departure::final means that `from` will never be resumed, and its stack is free once `to` runs.
[[gnu::always_inline]] inline switch_thread& switch_context(context& from, context& to, switch_thread& thread,
                                                            departure departure = departure::returns) noexcept {
#if ULEXITE_ASAN
  announce_switch(from, to.low, to.size, nullptr, departure);
#elif ULEXITE_TSAN
  announce_switch(from, nullptr, 0, to.sanitizer, departure);
#endif
  return switch_out(from, to.frame, nullptr, thread, departure);
}

// Call it when a fiber gets `stack`, or another name: ThreadSanitizer's reports show the name.
inline void name_context([[maybe_unused]] stack& stack, [[maybe_unused]] const fiber_identity& who) noexcept {
#if ULEXITE_TSAN
  char text[64];
  std::snprintf(text, sizeof text, "fiber #%llu %s", static_cast<unsigned long long>(who.id), who.name ? who.name : "");
  if (stack.sanitizer) __tsan_set_fiber_name(stack.sanitizer, text);
#endif
}

// Call it when `stack` becomes unused, from another computation than its last user.
inline void forget_context([[maybe_unused]] stack& stack) noexcept {
#if ULEXITE_TSAN
  if (stack.sanitizer) __tsan_destroy_fiber(stack.sanitizer);
  stack.sanitizer = nullptr;
#endif
}

}  // namespace ulexite::detail
