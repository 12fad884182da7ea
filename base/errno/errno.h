/* Takes the place of <errno.h>, because the package's flags put this folder before the system's. glibc promises
   compilers that the address of errno never changes within a function (`__attribute__((const))`), so they compute it
   once. A fiber that waits may continue on another thread, and would then read and write the errno of a thread that
   it has left: also in functions that are inlined into it, such as std::stoi. Here errno is the same function under
   a name without that promise. For C and C++. See docs/tls.md. */
#ifndef ULEXITE_BASE_ERRNO_ERRNO_H
#define ULEXITE_BASE_ERRNO_ERRNO_H
#pragma GCC system_header /* #include_next is no part of the standards */

#include_next <errno.h>

#ifdef __cplusplus
extern "C" int* ulexite_errno_location() noexcept __asm__("__errno_location");
#else
extern int* ulexite_errno_location(void) __asm__("__errno_location");
#endif
#undef errno
#define errno (*ulexite_errno_location())

#endif
