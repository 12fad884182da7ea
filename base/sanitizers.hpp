#pragma once

// ULEXITE_ASAN and ULEXITE_TSAN are 1 if this is built with that sanitizer of g++ or clang, and 0 otherwise.

#include <ulexite/base/standard.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define ULEXITE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ULEXITE_ASAN 1
#endif
#endif
#ifndef ULEXITE_ASAN
#define ULEXITE_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define ULEXITE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ULEXITE_TSAN 1
#endif
#endif
#ifndef ULEXITE_TSAN
#define ULEXITE_TSAN 0
#endif
