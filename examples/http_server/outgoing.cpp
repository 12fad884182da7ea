#include "outgoing.hpp"

#include <boost/beast/core/string_type.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace http_server {

// The header as bytes. Not by Beast's serializer, which wants a header of its own and takes ten times as long.
std::string outgoing::begin(const response_header& header) {
  status_ = header.result_int();
  keep_alive_ = header.keep_alive();
  std::string bytes = header.version() >= 11 ? "HTTP/1.1 " : "HTTP/1.0 ";
  const auto add = [&](boost::beast::string_view text) { bytes.append(text.data(), text.size()); };
  bytes.reserve(512);
  bytes += std::to_string(status_);
  bytes += ' ';
  add(header.reason());
  bytes += "\r\n";
  for (const auto& field : header) {
    add(field.name_string());
    bytes += ": ";
    add(field.value());
    bytes += "\r\n";
  }
  bytes += "\r\n";
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

// A small file goes in one piece with the header, another as the system sends files, if it can.
void outgoing::send_file(std::string block, open_file& file, const byte_range& part) {
  constexpr std::size_t small = 16 * 1024;
  if (part.size <= small || !wire_.sends_files()) return copy_file(std::move(block), file, part);
  timed(block.size(), [&] {
    wire_.write_before_file(block);
    return std::size_t{0};
  });
  // At the default least rate a block takes half of the write time.
  in_blocks(part, 256 * 1024, [&](std::uint64_t at, std::size_t size) {
    return timed(size, [&] { return wire_.send_file(file.native_handle(), at, size); });
  });
}

void outgoing::copy_file(std::string block, open_file& file, const byte_range& part) {
  in_blocks(part, 64 * 1024, [&](std::uint64_t at, std::size_t size) {
    const std::size_t before = block.size();
    block.resize(before + size);
    const std::size_t got = file.read_at(at, block.data() + before, size);
    block.resize(before + got);
    if (got > 0) write(block, got);
    block.clear();
    return got;
  });
}

// Calls send(offset, size), which returns how many bytes it has sent, until all are.
template <class Send>
void outgoing::in_blocks(const byte_range& part, std::size_t block_size, Send&& send) {
  for (std::uint64_t sent = 0; sent < part.size;) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(part.size - sent, block_size));
    const std::size_t got = send(part.offset + sent, size);
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
