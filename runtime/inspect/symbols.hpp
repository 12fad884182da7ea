#pragma once

#include <cstdint>
#include <string>

namespace ulexite::detail {

// The name, as it is mangled, of the function of the ELF file `module` that holds the address `offset` of that file; also
// of functions that the dynamic linker does not know, unless the file was stripped. Empty if none is found. Reads the
// file, every time. Throws std::bad_alloc.
std::string symbol_in_file(const char* module, std::uintptr_t offset);

}  // namespace ulexite::detail
