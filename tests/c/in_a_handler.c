/* With ulexite::signal_check, a call in a signal handler is refused in words; the program and the handler go on. */
#include "check.h"

#include <signal.h>

static ulx_channel* channel;
static ulx_mutex* mutex;
static ulx_fiber* parked;
static ulx_runtime* here;
static volatile int refused, handled;

static void call_everything(void) {
  char byte = 1;
  const void *low, *high;
  refused += ulx_sleep(1000) == ULX_EUSAGE;
  refused += ulx_send(channel, &byte, ULX_FOREVER) == ULX_EUSAGE;
  refused += ulx_try_send(channel, &byte) == ULX_EUSAGE;
  refused += ulx_mutex_lock(mutex) == ULX_EUSAGE;
  refused += !ulx_mutex_try_lock(mutex);
  refused += !ulx_cancel(parked);
  refused += !ulx_close(channel);
  refused += !ulx_spawn(NULL, NULL, NULL);
  refused += ulx_stop_world(here, 0, NULL, NULL) == ULX_EUSAGE;
  refused += ulx_fiber_id(parked) == 0;
  refused += ulx_shield(true);
  ulx_deadline outer;
  ulx_deadline_push(&outer, 0);
  ulx_deadline_pop(&outer);
  ulx_deadline_push(&outer, 0);
  ulx_block block;
  ulx_block_enter(&block);
  ulx_block_leave(&block);
  ulx_safepoint();
  ulx_fiber_release(parked);
  ulx_mutex_destroy(mutex);
  ulx_channel_destroy(channel);
  ulx_unpark(parked);
  ulx_yield();
  ulx_runtime_request_stop(here);
  (void)ulx_stack_around(&byte, &low, &high); /* which is allowed */
  ++handled;
}

static void plain_handler(int number) {
  CHECK_EQ(number, SIGUSR1);
  call_everything();
}
static void handler_with_more(int number, siginfo_t* info, void* context) {
  CHECK_EQ(number, SIGUSR2);
  CHECK(info && info->si_signo == SIGUSR2 && context);
  raise(SIGUSR1); /* one in the midst of another */
  call_everything();
}

static intptr_t parks(void* argument) {
  (void)argument;
  return ulx_park(ulx_now() + 20 * MILLISECONDS);
}

static intptr_t body(void* runtime) {
  here = runtime;
  CHECK(channel = ulx_channel_new(1, 1));
  CHECK(mutex = ulx_mutex_new());
  CHECK(parked = ulx_spawn(parks, NULL, NULL));
  ulx_yield();
  refused = handled = 0;
  raise(SIGUSR1);
  CHECK_EQ(handled, 1);
  CHECK_EQ(refused, 11);
  raise(SIGUSR2);
  CHECK_EQ(handled, 3);
  CHECK_EQ(refused, 33);

  /* Outside of a handler nothing has changed: nothing was unparked, sent, locked, stopped, destroyed. */
  intptr_t result = 0;
  CHECK_EQ(ulx_join(parked, ULX_FOREVER, &result), 0);
  CHECK_EQ(result, ULX_ETIMEDOUT);
  CHECK_EQ(ulx_channel_length(channel), 0);
  CHECK_EQ(ulx_mutex_lock(mutex), 0);
  CHECK_EQ(ulx_mutex_unlock(mutex), 0);
  CHECK_EQ(ulx_check(), 0);
  ulx_fiber_release(parked);
  ulx_mutex_destroy(mutex);
  ulx_channel_destroy(channel);
  return 42;
}

int main(void) {
  CHECK(signal(SIGUSR1, plain_handler) == SIG_DFL);
  struct sigaction wanted = {0}, found;
  wanted.sa_sigaction = handler_with_more;
  wanted.sa_flags = SA_SIGINFO;
  CHECK_EQ(sigaction(SIGUSR2, &wanted, NULL), 0);
  CHECK_EQ(sigaction(SIGUSR2, NULL, &found), 0);
  CHECK(found.sa_sigaction == handler_with_more); /* and not the bytes around it */
  CHECK(signal(SIGUSR1, plain_handler) == plain_handler);
  CHECK_EQ(sigaction(SIGKILL, &wanted, NULL), -1);
  run_with_each_width(body);
  CHECK(signal(SIGUSR1, SIG_DFL) == plain_handler);
  CHECK_EQ(sigaction(SIGUSR1, NULL, &found), 0);
  CHECK(found.sa_handler == SIG_DFL);
  puts("passed");
}
