#pragma once

// Included by every header that includes no other of ours, so that a compilation for an older standard ends with one
// sentence, before the hundreds of errors that would follow.

#if __cplusplus < 202002L
#error "Ulexite needs C++20 or later: compile with -std=c++20"
#include <ulexite/needs-c++20>  // there is no such file, and that ends the compilation
#endif
