#pragma once

#include <ulexite/base/standard.hpp>

// The version of these headers. The file VERSION, which the build reads, has it too; the install test compares them.
#define ULEXITE_VERSION_MAJOR 0
#define ULEXITE_VERSION_MINOR 1
#define ULEXITE_VERSION_PATCH 0

// As one number, for #if: 100 is 0.1.0, 10203 is 1.2.3.
#define ULEXITE_VERSION (ULEXITE_VERSION_MAJOR * 10000 + ULEXITE_VERSION_MINOR * 100 + ULEXITE_VERSION_PATCH)

#define ULEXITE_TEXT_OF(number) ULEXITE_TEXT(number)
#define ULEXITE_TEXT(number) #number

// As text: "0.1.0".
#define ULEXITE_VERSION_STRING           \
  ULEXITE_TEXT_OF(ULEXITE_VERSION_MAJOR) \
  "." ULEXITE_TEXT_OF(ULEXITE_VERSION_MINOR) "." ULEXITE_TEXT_OF(ULEXITE_VERSION_PATCH)
