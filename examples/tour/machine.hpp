#pragma once

#include <cstddef>

// Properties of the machine that the tour uses.
namespace tour {

// Bytes of memory that this process occupies; 0 if the system does not say.
std::size_t resident_memory();

// If fewer than `wanted` descriptors could be opened, raises the soft limit to the hard one. Returns the possible
// number, at most `wanted`.
std::size_t descriptors_for(std::size_t wanted);

}  // namespace tour
