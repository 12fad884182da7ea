/* How a collector searches: all aligned words of an area. */
#ifndef WORDS_H
#define WORDS_H

#include <stdint.h>

/* The number of words in [low, high) that equal `what`. Sanitizers would report these reads. */
__attribute__((no_sanitize("address", "thread"))) static int holds(const void* low, const void* high,
                                                                   const void* what) {
  int found = 0;
  for (uintptr_t at = (uintptr_t)low; at + sizeof(void*) <= (uintptr_t)high; at += sizeof(void*))
    found += *(void* const*)at == what;
  return found;
}

#endif
