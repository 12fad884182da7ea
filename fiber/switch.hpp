#pragma once

// The switch itself, in one piece. It is inlined into its few callers on purpose: after a switch the processor's
// return-address predictor holds the other computation's calls, so each function that returns on the way out costs a
// misprediction, and there were four of them, half of the whole switch.

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

// Handed from the computation that leaves to the one that arrives, on the stack of the former.
struct passage {
  context* from;
  switch_thread* thread;
  void (*entry)(switch_thread&);  // of a computation that starts
  floating_controls floating;
};

// What both ends of a switch do on arrival: the one that left is described completely only now.
inline switch_thread& arrive(arrival arrival, floating_controls own, [[maybe_unused]] void* own_fake_stack) noexcept {
  const passage& passage = *static_cast<detail::passage*>(arrival.data);
  passage.from->frame = arrival.frame;
  if (!(passage.floating == own)) [[unlikely]]
    own.apply();
#if ULEXITE_ASAN
  __sanitizer_finish_switch_fiber(own_fake_stack, &passage.from->low, &passage.from->size);
#endif
  return *passage.thread;
}

#if ULEXITE_ASAN
// A final departure that was announced. The announcement has freed AddressSanitizer's fake stack
// (detect_stack_use_after_return), where the frames of the callers lie; those of new calls lie on the real one.
[[noreturn, gnu::noinline]] inline void depart_for_good(void* target, void (*entry)(switch_thread&),
                                                        switch_thread& thread) noexcept {
  context from;
  passage passage{&from, &thread, entry, floating_controls::current(thread.floating)};
  jump(target, &passage);
  __builtin_trap();  // resumed although final
}
#endif

// The departing side. Everything that the thread holds for this computation is kept in this frame meanwhile.
[[gnu::always_inline]] inline switch_thread& depart(context& from, void* target, void (*entry)(switch_thread&),
                                                    switch_thread& thread, departure departure) noexcept {
#if ULEXITE_ASAN
  if (departure == departure::final) depart_for_good(target, entry, thread);
#endif
  passage passage{&from, &thread, entry, floating_controls::current(thread.floating)};
  if (departure == departure::final) {
    jump(target, &passage);
    __builtin_trap();  // resumed although final
  }
  const int error = *thread.error;
  const switch_thread::exception_globals exceptions = *thread.exceptions;
  const bool handling = exceptions.caught != nullptr || exceptions.uncaught != 0;
  if (handling) *thread.exceptions = {};

  const arrival arrival = jump(target, &passage);
#if ULEXITE_ASAN
  switch_thread& now = arrive(arrival, passage.floating, from.fake_stack);
#else
  switch_thread& now = arrive(arrival, passage.floating, nullptr);
#endif
  if (handling) *now.exceptions = exceptions;  // whoever left just now has left them empty
  *now.error = error;
  return now;
}

// Tells the sanitizers what is about to happen. A final departure passes no place for the fake stack, which frees it.
// Inlined, for a function's exit must be told to the same ThreadSanitizer fiber as its entry.
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

// Leaves the running computation in `from` and starts entry(thread) on `stack`. Computations whose stacks are all alike
// fall on the same cache lines, so the top is shifted by `stack_colour`. `entry` must end in a final switch. Otherwise
// like switch_context.
[[gnu::always_inline]] inline switch_thread& start_context(context& from, stack& stack, unsigned stack_colour,
                                                           void (*entry)(switch_thread&), switch_thread& thread,
                                                           departure departure = departure::returns) noexcept {
  char* const top = stack.high - (stack_colour % 16) * 128;
#if ULEXITE_ASAN
  __asan_unpoison_memory_region(stack.low, stack.size());  // of frames that its last user never returned from
#endif
#if ULEXITE_TSAN
  if (!stack.sanitizer) stack.sanitizer = __tsan_create_fiber(0);
#endif
  announce_switch(from, stack.low, stack.size(), stack.sanitizer, departure);
  void* const frame = make_frame(top, static_cast<std::size_t>(top - stack.low));
  return depart(from, frame, entry, thread, departure);
}

// Leaves the running computation in `from` and goes on in `to`. Returns when somebody switches to `from`, perhaps on
// another thread: the one returned. errno, the exceptions being handled and the floating-point control words stay with
// the computation. departure::final: `from` will never be resumed, and its stack is free once `to` runs.
[[gnu::always_inline]] inline switch_thread& switch_context(context& from, context& to, switch_thread& thread,
                                                            departure departure = departure::returns) noexcept {
#if ULEXITE_ASAN
  announce_switch(from, to.low, to.size, nullptr, departure);
#elif ULEXITE_TSAN
  announce_switch(from, nullptr, 0, to.sanitizer, departure);
#endif
  return depart(from, to.frame, nullptr, thread, departure);
}

// To be called when a fiber begins to stand on `stack`, or has another name: ThreadSanitizer's reports show it.
inline void name_context([[maybe_unused]] stack& stack, [[maybe_unused]] const fiber_identity& who) noexcept {
#if ULEXITE_TSAN
  char text[64];
  std::snprintf(text, sizeof text, "fiber #%llu %s", static_cast<unsigned long long>(who.id), who.name ? who.name : "");
  if (stack.sanitizer) __tsan_set_fiber_name(stack.sanitizer, text);
#endif
}

// To be called when `stack` goes out of use for now, by another computation than the one that used it.
inline void forget_context([[maybe_unused]] stack& stack) noexcept {
#if ULEXITE_TSAN
  if (stack.sanitizer) __tsan_destroy_fiber(stack.sanitizer);
  stack.sanitizer = nullptr;
#endif
}

}  // namespace ulexite::detail
