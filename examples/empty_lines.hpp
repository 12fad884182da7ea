#pragma once

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstring>

namespace examples {

// Drops the empty lines before a request, which RFC 9112, 2.2 lets a client send. Returns whether the rest of `buffer`
// begins a request. Beast takes such a line for a malformed request.
template <class Buffer>
bool skip_empty_lines(Buffer& buffer) {
  const auto begins_with = [&buffer](const char* text, std::size_t size) {
    return buffer.size() >= size && std::memcmp(buffer.data().data(), text, size) == 0;
  };
  while (begins_with("\r\n", 2)) buffer.consume(2);
  return buffer.size() > 1 || (buffer.size() == 1 && !begins_with("\r", 1));
}

// Reads until `buffer` begins a request. Sets `error`.
template <class Stream, class Buffer>
void await_request(Stream& from, Buffer& buffer, boost::system::error_code& error) {
  while (!error && !skip_empty_lines(buffer)) buffer.commit(from.read_some(buffer.prepare(4096), error));
}

}  // namespace examples
