#include "outgoing.hpp"

#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace http_server {
namespace http = boost::beast::http;

// The header as bytes.
std::string outgoing::begin(const response_header& header) {
  status_ = header.result_int();
  keep_alive_ = header.keep_alive();
  std::string bytes;
  response_header copy = header;  // the serializer wants one that it could change
  http::serializer<false, http::empty_body> serializer(copy);
  boost::system::error_code error;
  while (!error && !serializer.is_header_done()) {
    serializer.next(error, [&](boost::system::error_code&, const auto& buffers) {
      bytes += boost::beast::buffers_to_string(buffers);
      serializer.consume(boost::beast::buffer_bytes(buffers));
    });
  }
  return bytes;
}

std::chrono::nanoseconds outgoing::time_for(std::size_t block) const {
  if (limits_.least_rate == 0) return limits_.write_time;
  const std::chrono::duration<double> at_least_rate(static_cast<double>(bytes_ + block) /
                                                    static_cast<double>(limits_.least_rate));
  const auto left = std::chrono::duration<double>(limits_.write_time) + at_least_rate - spent_;
  return left < limits_.write_time ? std::chrono::duration_cast<std::chrono::nanoseconds>(left) : limits_.write_time;
}

template <class Send>
std::size_t outgoing::timed(std::size_t size, Send&& send) {
  const auto begun = std::chrono::steady_clock::now();
  wire_.tcp().expires_at(begun + time_for(size));
  const std::size_t of_body = send();
  spent_ += std::chrono::steady_clock::now() - begun;
  bytes_ += of_body;
  return of_body;
}

void outgoing::write(std::string_view block, std::size_t of_body) {
  timed(block.size(), [&] {
    wire_.write(block);
    return of_body;
  });
}

void outgoing::send(answer made) {
  std::string block = begin(made.header);
  if (made.head_only) return write(block, 0);
  if (made.part.size > 0) return send_file(std::move(block), made.file, made.part);
  write(block + made.text, made.text.size());
}

// The first block goes with the header; the others as the system sends files, if it can.
void outgoing::send_file(std::string block, open_file& file, const byte_range& part) {
  constexpr std::size_t block_size = 64 * 1024;
  for (std::uint64_t sent = 0; sent < part.size; block.clear()) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(part.size - sent, block_size));
    const std::uint64_t at = part.offset + sent;
    std::size_t got;
    if (sent > 0 && wire_.sends_files()) {
      got = timed(size, [&] { return wire_.send_file(file.native_handle(), at, size); });
    } else {
      const std::size_t before = block.size();
      block.resize(before + size);
      got = file.read_at(at, block.data() + before, size);
      block.resize(before + got);
      if (got > 0) write(block, got);
    }
    if (got == 0) throw std::runtime_error("a file became shorter while it was sent");
    sent += got;
  }
}

void outgoing::begin_stream(response_header header) {
  chunked_ = header.version() >= 11;
  if (chunked_)
    header.chunked(true);
  else
    header.keep_alive(false);
  write(begin(header), 0);
}

void outgoing::send_part(std::string_view part) {
  if (part.empty()) return;  // an empty chunk is the last one
  if (!chunked_) return write(part, part.size());
  char size[24];
  const int digits = std::snprintf(size, sizeof size, "%zx\r\n", part.size());
  std::string chunk(size, static_cast<std::size_t>(digits));
  chunk += part;
  chunk += "\r\n";
  write(chunk, part.size());
}

void outgoing::end_stream() {
  if (chunked_) write("0\r\n\r\n", 0);
}

}  // namespace http_server
