#pragma once

// Every header that includes no other header of ours includes this one. So a compilation for an older standard ends
// with one sentence instead of hundreds of errors.

#if __cplusplus < 202002L
#error "Ulexite needs C++20 or later: compile with -std=c++20"
#include <ulexite/needs-c++20>  // there is no such file, and that ends the compilation
#endif
