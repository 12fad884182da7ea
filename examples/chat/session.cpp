#include "session.hpp"

#include "log.hpp"
#include "seat.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>

#include <boost/beast/core/buffers_to_string.hpp>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace chat {
namespace {

namespace websocket = boost::beast::websocket;
using namespace std::chrono_literals;

constexpr auto idle_code = static_cast<websocket::close_code>(4008);  // of our own, after HTTP's 408
constexpr auto linger_time = 3s;                                      // for the member's close frame

// A server's close frame, see RFC 6455, 5.5.1.
std::string close_frame(websocket::close_code code, std::string_view reason) {
  reason = reason.substr(0, 123);  // the most that fits
  std::string frame{'\x88', static_cast<char>(2 + reason.size()), static_cast<char>(code >> 8),
                    static_cast<char>(code & 0xFF)};
  return frame.append(reason);
}

}  // namespace

void mark(boost::beast::http::fields& answer) {
  answer.set(boost::beast::http::field::server, "ulexite-chat");
  if (const auto& now = examples::current_request()) answer.set("X-Request-Id", now->request_id);
}

session::session(ulexite::net::tcp_stream& tcp, rooms& rooms, const limits& limits, std::stop_token closing)
    : tcp_(tcp),
      rooms_(rooms),
      limits_(limits),
      closing_(std::move(closing)),
      socket_(ulexite::asio_stream(tcp, guard_)) {
  tcp_.set_send_buffer(64 * 1024);  // the system's memory for a member that does not read
  socket_.auto_fragment(false);     // fewer writes
  socket_.read_message_max(0);      // read_message has the limit, and reports it
  socket_.control_callback([this](websocket::frame_type kind, auto) {
    note_life();
    // Beast would echo any code from 3000 on, but there is none above 4999: RFC 6455, 7.4.2. Called with guard_ held.
    if (kind == websocket::frame_type::close && socket_.reason().code > 4999)
      send_end({websocket::protocol_error, "there is no such close code"});
  });
  socket_.set_option(websocket::stream_base::decorator([](websocket::response_type& answer) { mark(answer); }));
}

void session::run(const request& handshake) {
  note_life();
  if (!accept(handshake)) return;
  try {
    const std::string_view target(handshake.target().data(), handshake.target().size());
    seat asked = parse_seat(target);
    member self{.room = std::move(asked.room), .name = std::move(asked.name)};
    if (rooms_.join(self))
      take_part(self);
    else
      end({websocket::try_again_later, "the room is full: " + std::to_string(limits_.room_members) + " members"});
  } catch (const std::invalid_argument& refusal) {  // of the seat
    end({websocket::policy_error, refusal.what()});
  }
}

// Beast itself answers a bad handshake, with 400 and the reason.
bool session::accept(const request& handshake) {
  const std::lock_guard lock(guard_);
  error_code error;
  socket_.accept(handshake, error);
  if (error) log(spdlog::level::info, "bad upgrade", {{"why", error.message()}});
  return !error;
}

void session::take_part(member& self) {
  const nlohmann::ordered_json who{{"room", self.room}, {"name", self.name}};
  log(spdlog::level::info, "joined", who);
  ulexite::scope([&](ulexite::task_group& both) {
    struct leaving {
      rooms& all;
      member& self;
      ~leaving() { all.leave(self); }  // and so the writer ends
    } const leaving{rooms_, self};
    both.spawn(examples::with_request([&] { write_messages(self); }));
    end(read_messages(self));
    read_to_the_end_.set();
  });
  log(spdlog::level::info, "left", who);
}

session::ending session::read_messages(const member& self) {
  for (;;) {
    std::string message;
    if (ending why = read_message(message); why.code != websocket::none || message.empty()) return why;
    if (!allowed_now())
      return {websocket::policy_error,
              "more than " + std::to_string(limits_.messages_a_second) + " messages in a second"};
    const json parsed = json::parse(message, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("text") || !parsed["text"].is_string())
      return {websocket::policy_error, R"(a message must be JSON: {"text": "..."})"};
    rooms_.say(self, parsed["text"]);
  }
}

// An empty message with no reason means that the connection has ended, and Beast has sent all that was needed.
session::ending session::read_message(std::string& message) {
  const std::lock_guard lock(guard_);
  note_life();
  boost::beast::flat_buffer buffer;
  error_code error;
  do {
    socket_.read_some(buffer, limits_.message_size + 1 - buffer.size(), error);
  } while (!error && !socket_.is_message_done() && buffer.size() <= limits_.message_size);
  if (error && ulexite::steady_clock::now() >= silent_until_)
    return {idle_code, "nothing heard for " + std::to_string(limits_.idle.count()) + " s"};
  if (error) {
    ulexite::this_fiber::check();  // Beast knows no cancellation
    log(spdlog::level::info, "connection ended", {{"why", error.message()}});
    return {};
  }
  if (buffer.size() > limits_.message_size)
    return {websocket::too_big, "a message may have " + std::to_string(limits_.message_size) + " bytes"};
  if (!socket_.got_text()) return {websocket::unknown_data, "messages must be text, not binary"};
  message = boost::beast::buffers_to_string(buffer.data());
  if (message.empty()) return {websocket::policy_error, "the message is empty"};
  return {};
}

void session::note_life() {
  silent_until_ = ulexite::steady_clock::now() + limits_.idle;
  tcp_.expires_at(silent_until_);
}

bool session::allowed_now() {
  const auto now = ulexite::steady_clock::now();
  if (now - second_ > 1s) {
    second_ = now;
    messages_in_second_ = 0;
  }
  return ++messages_in_second_ <= limits_.messages_a_second;
}

void session::write_messages(member& self) {
  // No ping begins when a silent member is dropped: it could be cut short, and the close frame with it.
  const auto ping_every = std::chrono::milliseconds(limits_.idle) * 2 / 5;
  auto next_ping = ulexite::steady_clock::now() + ping_every;
  for (error_code error; !error;) {
    ending why;
    bool ended = false;
    ulexite::select(ulexite::in_order,  // otherwise a stop would wait behind all messages
                    ulexite::on_stop(closing_, [&] { why = {websocket::going_away, "the server is stopping"}; }),
                    ulexite::after(next_ping - ulexite::steady_clock::now(),
                                   [&] {
                                     ping(error);
                                     next_ping += ping_every;
                                   }),
                    ulexite::on_receive(self.outgoing, [&](std::optional<text> event) {
                      ended = !event;
                      if (event && !self.too_slow.load(std::memory_order_relaxed)) write(*event, error);
                    }));
    if (self.too_slow.load(std::memory_order_relaxed))
      why = {websocket::try_again_later, "too slow: " + std::to_string(self.outgoing.capacity()) + " messages waited"};
    if (why.code != websocket::none) {
      end(why);
      if (!read_to_the_end_.wait_for(linger_time)) tcp_.shutdown_read();  // the member does not answer
      return;
    }
    if (ended) return;
  }  // after an error the reader has met it too, or will soon, and has the last word
}

void session::write(const text& event, error_code& error) {
  send([&] { socket_.write(boost::asio::buffer(*event), error); }, error);
}

void session::ping(error_code& error) {
  send([&] { socket_.ping({}, error); }, error);
}

// A write that begins when the time is over sends nothing. So it is left out, and does not count as cut short.
template <class Write>
void session::send(Write write, error_code& error) {
  const std::lock_guard lock(guard_);
  if (ulexite::steady_clock::now() >= silent_until_) {
    error = boost::asio::error::timed_out;
    return;
  }
  write();
  if (error) cut_short_ = true;
}

// Sends this side's close frame, once; but not behind a part of another frame.
void session::end(const ending& why) {
  if (why.code == websocket::none) return;
  const std::lock_guard lock(guard_);
  send_end(why);
}

// Called with guard_ held.
void session::send_end(const ending& why) {
  log(spdlog::level::info, "ending", {{"code", static_cast<unsigned>(why.code)}, {"why", why.reason}});
  tcp_.expires_after(linger_time);
  std::error_code error;
  if (!cut_short_) tcp_.write(close_frame(why.code, why.reason), error);
  tcp_.shutdown_write(error);
}

}  // namespace chat
