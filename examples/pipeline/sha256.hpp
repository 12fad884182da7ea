#pragma once

#include <string>

// The SHA-256 of a file's content in hexadecimal digits. A cancellation point. Throws std::system_error naming the
// file.
std::string sha256_of(const std::string& path);
