/* Channels in C: elements of every size, closing, time-outs, select. */
#include "check.h"

struct large {
  char text[100];
  int number;
};

static void generate(void* channel) {
  for (int n = 2; n < 300; ++n)
    if (ulx_send(channel, &n, ULX_FOREVER)) break;
  ulx_close(channel);
}

struct stage {
  ulx_channel *in, *out;
  int prime;
};

static void filter(void* argument) {
  struct stage* const stage = argument;
  int n;
  while (ulx_receive(stage->in, &n, ULX_FOREVER) == 0)
    if (n % stage->prime && ulx_send(stage->out, &n, ULX_FOREVER)) break;
  ulx_close(stage->out);
  free(stage);
}

static void primes(void) {
  ulx_channel* all[100] = {ulx_channel_new(sizeof(int), 0)};
  int prime, found = 0;
  CHECK_EQ(ulx_go(generate, all[0], NULL), 0);
  while (ulx_receive(all[found], &prime, ULX_FOREVER) == 0) {
    struct stage* const stage = malloc(sizeof *stage);
    *stage = (struct stage){all[found], ulx_channel_new(sizeof(int), found % 3), prime};
    all[++found] = stage->out;
    CHECK_EQ(ulx_go(filter, stage, NULL), 0);
  }
  CHECK_EQ(found, 62);
  for (int i = 0; i <= found; ++i) {
    int left;
    CHECK_EQ(ulx_receive(all[i], &left, ULX_FOREVER), ULX_ECLOSED);
  }
  for (int i = 0; i < 100; ++i) ulx_yield(); /* the filters' last calls return */
  ulx_sleep(5 * MILLISECONDS);
  for (int i = 0; i <= found; ++i) ulx_channel_destroy(all[i]);
}

static void sizes(void) {
  ulx_channel* const channel = ulx_channel_new(sizeof(struct large), 2);
  struct large out = {"a large element", 9}, in = {"", 0};
  CHECK_EQ(ulx_send(channel, &out, ULX_FOREVER), 0);
  CHECK_EQ(ulx_try_send(channel, &out), 0);
  CHECK_EQ(ulx_channel_length(channel), 2);
  CHECK_EQ(ulx_try_send(channel, &out), ULX_EWOULDBLOCK);
  CHECK_EQ(ulx_send(channel, &out, ulx_now() + MILLISECONDS), ULX_ETIMEDOUT);
  CHECK_EQ(ulx_receive(channel, &in, ULX_FOREVER), 0);
  CHECK(!strcmp(in.text, out.text) && in.number == 9);
  CHECK(ulx_close(channel));
  CHECK(!ulx_close(channel));
  CHECK_EQ(ulx_send(channel, &out, ULX_FOREVER), ULX_ECLOSED);
  CHECK_EQ(ulx_try_send(channel, &out), ULX_ECLOSED);
  CHECK_EQ(ulx_try_receive(channel, &in), 0);
  CHECK_EQ(ulx_try_receive(channel, &in), ULX_ECLOSED);
  ulx_channel_destroy(channel);

  ulx_channel* const signals = ulx_channel_new(0, ULX_UNBOUNDED); /* elements without content */
  for (int i = 0; i < 50; ++i) CHECK_EQ(ulx_send(signals, NULL, ULX_FOREVER), 0);
  for (int i = 0; i < 50; ++i) CHECK_EQ(ulx_receive(signals, NULL, 0), 0);
  CHECK_EQ(ulx_try_receive(signals, NULL), ULX_EWOULDBLOCK);
  CHECK_EQ(ulx_receive(signals, NULL, ulx_now() + MILLISECONDS), ULX_ETIMEDOUT);
  ulx_channel_destroy(signals);
}

static intptr_t five(void* argument) {
  (void)argument;
  return 5;
}

static void selecting(void) {
  ulx_channel* const full = ulx_channel_new(sizeof(int), 1);
  ulx_channel* const empty = ulx_channel_new(sizeof(struct large), 1);
  int one = 1, two = 2;
  struct large received = {"", 0};
  CHECK_EQ(ulx_send(full, &one, ULX_FOREVER), 0);
  ulx_case cases[] = {{.what = ULX_CASE_SEND, .channel = full, .element = &two},
                      {.what = ULX_CASE_RECEIVE, .channel = empty, .element = &received},
                      {.what = ULX_CASE_OFF}};
  size_t chosen = 99;
  CHECK_EQ(ulx_select(cases, 3, 0, &chosen), ULX_ETIMEDOUT);
  CHECK_EQ(ulx_select(cases, 3, ulx_now() + MILLISECONDS, &chosen), ULX_ETIMEDOUT);
  CHECK_EQ(chosen, 99);
  struct large sent = {"by select", 3};
  CHECK_EQ(ulx_send(empty, &sent, ULX_FOREVER), 0);
  CHECK_EQ(ulx_select(cases, 3, ULX_FOREVER, &chosen), 0);
  CHECK_EQ(chosen, 1);
  CHECK(!strcmp(received.text, "by select"));
  CHECK_EQ(ulx_receive(full, &one, 0), 0);
  CHECK_EQ(ulx_select(cases, 3, ULX_FOREVER, &chosen), 0);
  CHECK_EQ(chosen, 0);
  CHECK_EQ(ulx_receive(full, &one, 0), 0);
  CHECK_EQ(one, 2);
  ulx_close(empty);
  cases[0].what = ULX_CASE_OFF;
  CHECK_EQ(ulx_select(cases, 3, ULX_FOREVER, &chosen), 0);
  CHECK_EQ(chosen, 1);
  CHECK_EQ(cases[1].error, ULX_ECLOSED);

  ulx_fiber* const fiber = ulx_spawn(five, NULL, NULL);
  ulx_case joins[] = {{.what = ULX_CASE_JOIN, .fiber = fiber},
                      {.what = ULX_CASE_RECEIVE, .channel = full, .element = &one}};
  CHECK_EQ(ulx_select(joins, 2, ULX_FOREVER, &chosen), 0);
  CHECK_EQ(chosen, 0);
  CHECK(ulx_done(fiber));
  ulx_fiber_release(fiber);

  ulx_channel* many[40];
  ulx_case receives[40];
  int value = 0;
  for (int i = 0; i < 40; ++i) {
    many[i] = ulx_channel_new(sizeof(int), 1);
    receives[i] = (ulx_case){.what = ULX_CASE_RECEIVE, .channel = many[i], .element = &value};
  }
  CHECK_EQ(ulx_send(many[33], &two, 0), 0);
  CHECK_EQ(ulx_select(receives, 40, ulx_now() + 60 * SECONDS, &chosen), 0);
  CHECK_EQ(chosen, 33);
  CHECK_EQ(value, 2);
  for (int i = 0; i < 40; ++i) ulx_channel_destroy(many[i]);
  CHECK_EQ(ulx_select(NULL, 0, ULX_FOREVER, &chosen), ULX_EUSAGE);
  CHECK_EQ(ulx_select(NULL, 0, 0, &chosen), ULX_ETIMEDOUT);
  CHECK_EQ(ulx_select(NULL, 0, ulx_now() + MILLISECONDS, &chosen), ULX_ETIMEDOUT);
  ulx_channel_destroy(full);
  ulx_channel_destroy(empty);
}

static intptr_t body(void* runtime) {
  (void)runtime;
  primes();
  sizes();
  selecting();
  return 42;
}

int main(void) {
  run_with_each_width(body);
  puts("passed");
}
