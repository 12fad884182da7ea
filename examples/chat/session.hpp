#pragma once

// One member's websocket, from the handshake to the end.
//
// Two fibers: one reads what the member says, one writes what the room says, pings, and the reason for an end. They
// share Beast's stream, which is for one caller at a time; `guard_` sees to that, and a read gives it up while it waits
// (see asio_stream). Beast's close() would read as well, beside the reader; so the close frame of an end that comes
// from here is written by hand.
//
// Time: each frame of the member's gives the connection `idle` more. A member that is there answers the pings; of one
// that is not, or that takes nothing, every read and write fails when that is over.

#include "limits.hpp"
#include "rooms.hpp"

#include <ulexite/interop/asio.hpp>
#include <ulexite/sync/event.hpp>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <stop_token>
#include <string>

namespace chat {

using request = boost::beast::http::request<boost::beast::http::string_body>;

class session {
 public:
  session(ulexite::net::tcp_stream& tcp, rooms& rooms, const limits& limits, std::stop_token closing);

  // Answers the handshake, and serves the member until it leaves or `closing` is told. A cancellation point; throws
  // nothing else that the member could bring about.
  void run(const request& handshake);

 private:
  using close_code = boost::beast::websocket::close_code;
  using error_code = boost::system::error_code;
  // Why the connection is to end. None: it has ended.
  struct ending {
    close_code code = close_code::none;
    std::string reason{};
  };

  bool accept(const request& handshake);
  void take_part(member& self);
  ending read_messages(const member& self);
  ending read_message(std::string& message);
  void note_life();
  bool allowed_now();
  void write_messages(member& self);
  void write(const text& event, error_code& error);
  void ping(error_code& error);
  void end(const ending& why);

  ulexite::net::tcp_stream& tcp_;
  rooms& rooms_;
  const limits& limits_;
  const std::stop_token closing_;
  ulexite::mutex guard_;  // guards socket_
  boost::beast::websocket::stream<ulexite::asio_stream, false> socket_;
  ulexite::event read_to_the_end_;
  // The reader's: when the member has been silent for too long; when the current second began, and what came in it.
  ulexite::steady_clock::time_point silent_until_{}, second_{};
  std::size_t messages_in_second_ = 0;
};

}  // namespace chat
