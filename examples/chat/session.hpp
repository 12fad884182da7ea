#pragma once

// One member's websocket, from the handshake to the end.
//
// It has two fibers. One reads the member's messages. The other writes the room's events, pings, and the reason for an
// end. They share Beast's stream, which is for one caller at a time. `guard_` ensures that, and a read unlocks it while
// it waits (see asio_stream). Beast's close() would also read, beside the reader. So a close frame from this side is
// written by hand.
//
// Each message and each control frame of the member extends the connection's time by `idle`. Fragments of a message do
// not. A live member answers the pings. If the member is
// dead, or takes nothing, every read and write fails when the time has passed.

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

// Says on an answer which program made it, and for which request.
void mark(boost::beast::http::fields& answer);

class session {
 public:
  session(ulexite::net::tcp_stream& tcp, rooms& rooms, const limits& limits, std::stop_token closing);

  // Answers the handshake, and serves the member until it leaves or a stop is requested of `closing`. A cancellation
  // point. Throws no other exception that a member can cause.
  void run(const request& handshake);

 private:
  using close_code = boost::beast::websocket::close_code;
  using error_code = boost::system::error_code;
  // The reason for the end of the connection. None: it has ended already.
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
  template <class Write>
  void send(Write write, error_code& error);
  void end(const ending& why);
  void send_end(const ending& why);

  ulexite::net::tcp_stream& tcp_;
  rooms& rooms_;
  const limits& limits_;
  const std::stop_token closing_;
  ulexite::mutex guard_;    // guards socket_ and cut_short_
  bool cut_short_ = false;  // a write has failed, perhaps behind a part of its frame
  boost::beast::websocket::stream<ulexite::asio_stream, false> socket_;
  ulexite::event read_to_the_end_;
  // Of the reader: the time when the member was silent for too long; the start of the current second, and the messages
  // in it.
  ulexite::steady_clock::time_point silent_until_{}, second_{};
  std::size_t messages_in_second_ = 0;
};

}  // namespace chat
