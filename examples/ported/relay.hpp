#pragma once

// Passes messages of HTTP/1.1 on, for reverse_proxy: the header, and the body in blocks, each as soon as it has come.

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <ulexite/interop/asio.hpp>
#include <ulexite/net/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace relay {

namespace http = boost::beast::http;

// What a connection may hold of a message: a block of its body, and bytes that were read, and not passed on yet. The
// latter also bound a header, the extension of a chunk, and a trailer.
inline constexpr std::size_t block_size = 32 * 1024, most_unread = 64 * 1024;
// How long a peer may take for a block.
inline constexpr std::chrono::seconds patience{60};

// A connection to one of both sides. It reads the streams of `tcp` also after that was replaced.
struct side {
  ulexite::net::tcp_stream& tcp;
  ulexite::asio_stream stream{tcp};
  boost::beast::flat_buffer buffer{most_unread};
};

// How passing on ended: where it failed, and why.
struct ending {
  enum { complete, source_failed, target_failed } how = complete;
  boost::system::error_code why{};
};

// Writes `header`, and then the body that `parser` has not read yet. When all is read, is_whole() says whether the
// last block is to be written. The reads of a request keep their expiry; an answer may last for ever, so each block has
// its own.
template <bool is_request, class IsWhole>
ending pass_on(side& from, http::parser<is_request, http::buffer_body>& parser, side& to,
               http::message<is_request, http::buffer_body> header, IsWhole&& is_whole) {
  http::serializer<is_request, http::buffer_body> writer(header);
  std::vector<char> block(parser.is_done() ? 0 : block_size);
  if (!parser.is_done()) from.buffer.reserve(block_size);  // else Beast reads pieces as small as the header's rest
  boost::system::error_code error;
  bool begun = false;
  for (bool more = true; more;) {
    auto& body = parser.get().body();
    body.data = block.data();
    body.size = block.size();
    if (!parser.is_done() && (begun || from.buffer.size() > 0)) {  // the header does not wait for the body
      if (!is_request) from.tcp.reads_expire_after(patience);
      http::read_some(from.stream, from.buffer, parser, error);
      if (error && error != http::error::need_buffer) return {ending::source_failed, error};
    }
    const std::size_t got = block.size() - body.size;
    more = !parser.is_done();
    if (begun && more && got == 0) continue;  // a block without bytes would be the last chunk
    if (!more && !is_whole()) return {ending::source_failed, http::error::partial_message};
    header.body() = {got > 0 ? block.data() : nullptr, got, more};
    to.tcp.writes_expire_after(patience);
    if (more && got == 0)
      http::write_header(to.stream, writer, error);
    else
      http::write(to.stream, writer, error);
    if (error && error != http::error::need_buffer) return {ending::target_failed, error};
    begun = true;
  }
  return {};
}

// Erases what concerns only one connection: known fields, and those that `Connection` names.
inline void erase_hop_fields(http::fields& header) {
  std::vector<std::string> named;  // copies, because an erased line takes its names with it
  for (auto [line, end] = header.equal_range(http::field::connection); line != end; ++line)
    for (const auto name : http::token_list(line->value())) named.emplace_back(name.data(), name.size());
  for (const std::string& name : named)
    if (!boost::beast::iequals(name, "host")) header.erase(name);
  for (const auto hop : {http::field::connection, http::field::keep_alive, http::field::te, http::field::trailer,
                         http::field::upgrade, http::field::proxy_connection, http::field::expect})
    header.erase(hop);
}

}  // namespace relay
