#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Numbers in a form that is easy to read.
namespace tour {

std::string grouped(std::uint64_t number);                        // 1,234,567
std::string bytes(std::uint64_t size);                            // 12.3 MB
std::string duration(double seconds);                             // 12.3 ms
std::string rate(double amount, double seconds, const char* of);  // 1.23 M words/s

// `text`, filled up to `width` on its right or on its left.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

}  // namespace tour
