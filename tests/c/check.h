/* Shared by the programs in C: a check that names its line and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <ulexite/interop/ulexite.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#define CHECK_EQ(left, right)                                                                                \
  do {                                                                                                       \
    const int64_t left_value = (int64_t)(left), right_value = (int64_t)(right);                              \
    if (left_value != right_value) {                                                                         \
      fprintf(stderr, "%s:%d: %s is %" PRId64 ", not %s, which is %" PRId64 "\n", __FILE__, __LINE__, #left, \
              left_value, #right, right_value);                                                              \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

#define MILLISECONDS INT64_C(1000000)
#define SECONDS INT64_C(1000000000)

/* Runs body as the main fiber of runtimes of 1, 2, 4 and 16 workers. */
static inline void run_with_each_width(intptr_t (*body)(void*)) {
  const size_t widths[] = {1, 2, 4, 16};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i) {
    ulx_runtime_options options = ULX_INIT(ulx_runtime_options);
    options.threads = widths[i];
    ulx_runtime* const runtime = ulx_runtime_new(&options);
    CHECK(runtime);
    intptr_t result = 0;
    CHECK_EQ(ulx_runtime_run(runtime, body, runtime, &result), 0);
    CHECK_EQ(result, 42);
    ulx_metrics metrics = ULX_INIT(ulx_metrics);
    CHECK_EQ(ulx_runtime_metrics(runtime, &metrics), 0);
    CHECK_EQ(metrics.lost_wakeups, 0);
    size_t abandoned = 1;
    CHECK_EQ(ulx_runtime_destroy(runtime, ULX_CANCEL, &abandoned), 0);
    CHECK_EQ(abandoned, 0);
  }
}

#endif
