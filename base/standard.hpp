#pragma once

// Every header that includes no other header of ours includes this one. So a compilation that cannot succeed ends with
// one sentence instead of hundreds of errors: there is no file with the name that is included behind each.

#if __cplusplus < 202002L
#error "Ulexite needs C++20 or later: compile with -std=c++20"
#include <ulexite/needs-c++20>
#elif defined(__clang__) ? __clang_major__ < 16 : defined(__GNUC__) && __GNUC__ < 12
#error "Ulexite needs g++ 12 or later, or clang 16 or later (Debian: g++, clang-19)"
#include <ulexite/needs-a-newer-compiler>
#elif !(defined(__x86_64__) && defined(__LP64__)) && !defined(__aarch64__)
#error "Ulexite runs on x86-64 and aarch64 only, in programs of 64 bits"
#include <ulexite/needs-x86-64-or-aarch64>
#endif
