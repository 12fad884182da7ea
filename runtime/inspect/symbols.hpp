#pragma once

#include <cstdint>
#include <string>

namespace ulexite::detail {

// The mangled name of the function at the address `offset` of the ELF file `module`. Finds also functions that the
// dynamic linker does not know, unless the file was stripped. Empty if there is none. Reads the file at each call.
// Throws std::bad_alloc.
std::string symbol_in_file(const char* module, std::uintptr_t offset);

}  // namespace ulexite::detail
