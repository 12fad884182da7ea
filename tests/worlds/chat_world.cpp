// chat: members enter rooms, talk and leave, while the server may be stopped. A member sees the messages of its room
// only, each once, in the sender's order and without a gap, and none of a member that is absent. The server ends in
// time, and then it has no rooms.
#include "../../examples/chat/http.hpp"
#include "world.hpp"

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace worlds;
using nlohmann::json;

const net::endpoint server_at = net::endpoint::ip("10.0.0.1", 80);
const chat::limits limits{.room_members = 3, .messages_a_second = 1000, .idle = 5s};

enum opcode : std::uint8_t { text_frame = 1, close_frame = 8, ping_frame = 9, pong_frame = 10 };

std::string frame(opcode kind, std::string_view payload) {
  expect(payload.size() < 126, "a short frame");
  std::string made{static_cast<char>(0x80 | kind), static_cast<char>(0x80 | payload.size())};
  return made.append(4, '\0').append(payload);  // a mask of zeros changes nothing
}

using counts = std::map<std::string, int>;  // of messages, by the name of the sender

// A websocket of a member. A result of false means that the connection has ended, or its time.
class member {
 public:
  member(std::string room, std::string name, counts& sent)
      : room_(std::move(room)), name_(std::move(name)), sent_(sent) {}

  bool enter() {
    std::error_code error;
    stream_ = net::tcp_stream::connect(server_at, {.timeout = 3s}, error);
    if (error) return false;
    stream_.expires_after(30s);
    std::size_t end = 0;
    if (!write("GET /ws?room=" + room_ + "&name=" + name_ +
               " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
      return false;
    while ((end = rest_.find("\r\n\r\n")) == rest_.npos)
      if (!fill(rest_.size() + 1)) return false;
    if (rest_.starts_with("HTTP/1.1 408 ")) return false;  // the network was slow
    expect(rest_.starts_with("HTTP/1.1 101 "), "a websocket");
    rest_.erase(0, end + 4);
    return true;
  }

  // Sends `count` messages in two pieces, and reads until the last of them has come back.
  bool talk(int count) {
    std::string all;
    for (int i = 1; i <= count; ++i)
      all += frame(text_frame, json({{"text", room_ + '/' + name_ + '/' + std::to_string(i)}}).dump());
    sent_[name_] = count;
    const std::size_t cut = choose(static_cast<std::uint32_t>(all.size()));
    if (!write(all.substr(0, cut)) || !write(all.substr(cut))) return false;
    while (seen_[name_] < count)
      if (!take_frame()) return false;
    return true;
  }

  void listen(std::chrono::milliseconds time) {
    stream_.expires_after(time);
    while (take_frame()) {
    }
  }

  void leave() {
    stream_.expires_after(30s);
    if (write(frame(close_frame, "\x03\xe8"))) listen(30s);
  }

  // The code of the server's close frame; 0: none has arrived.
  [[nodiscard]] int close_code() const { return close_code_; }

 private:
  bool write(const std::string& bytes) {
    std::error_code error;
    stream_.write(bytes.data(), bytes.size(), error);
    return !error;
  }

  bool fill(std::size_t size) {
    while (rest_.size() < size) {
      char data[512];
      std::error_code error;
      const std::size_t got = stream_.read_some(data, sizeof data, error);
      if (error || got == 0) return false;
      rest_.append(data, got);
    }
    return true;
  }

  std::size_t byte(std::size_t at) const { return static_cast<std::uint8_t>(rest_[at]); }

  bool take_frame() {
    if (close_code_ != 0 || !fill(2)) return false;
    const bool two_more = byte(1) == 126;
    if (two_more && !fill(4)) return false;
    const std::size_t begin = two_more ? 4 : 2, size = two_more ? byte(2) * 256 + byte(3) : byte(1);
    if (!fill(begin + size)) return false;
    if (byte(0) == (0x80 | close_frame)) close_code_ = static_cast<int>(byte(begin) * 256 + byte(begin + 1));
    if (byte(0) == (0x80 | text_frame)) take_event(json::parse(rest_.substr(begin, size)));
    if (byte(0) == (0x80 | ping_frame)) write(frame(pong_frame, ""));
    rest_.erase(0, begin + size);
    return true;
  }

  void take_event(const json& event) {
    const std::string type = event.at("type"), who = event.at("name");
    if (type == "message") return take_message(who, event.at("text"));
    expect((type == "welcome") == members_.empty(), "the welcome is the first event, and is there once");
    expect(type != "joined" || std::ranges::count(members_, who) == 0, "only others join");
    members_ = event.at("members");
    expect(std::ranges::count(members_, who) == (type == "left" ? 0 : 1), "the members after the change");
    if (type != "left") seen_[who] = 0;
  }

  void take_message(const std::string& who, const std::string& text) {
    expect(std::ranges::count(members_, who) == 1, "no message of a member that is absent");
    const int number = std::stoi(text.substr(text.rfind('/') + 1));
    expect(text == room_ + '/' + who + '/' + std::to_string(number), "a message of the room, by its sender");
    expect(number <= sent_[who], "a message that was sent");
    expect(!seen_.contains(who) || number == seen_[who] + 1, "the sender's order, without a gap");
    seen_[who] = number;
  }

  const std::string room_, name_;
  counts& sent_;
  net::tcp_stream stream_;
  std::string rest_;  // bytes that were read
  int close_code_ = 0;
  std::vector<std::string> members_;  // present, as far as this member knows
  counts seen_;                       // the number of the last message
};

void visit(int who, counts& sent, bool good) {
  member self(choose(4) == 0 ? "garden" : "hall", std::string(1, static_cast<char>('a' + who)), sent);
  if (!self.enter()) return expect(!good, "a good network lets members in");
  const bool storm = choose(16) == 0;  // more than may wait for a member
  const bool talked = self.talk(storm ? 70 + static_cast<int>(choose(100)) : 1 + static_cast<int>(choose(3)));
  if (good) expect(talked || self.close_code() == 1013, "a good network brings every message back");
  if (talked && choose(2) == 0) self.listen(std::chrono::milliseconds(choose(20)));
  if (choose(4) == 0) return;  // without a close frame
  self.leave();
  const int code = self.close_code();
  expect(code == 0 || code == 1000 || code == 1001 || code == 1013 || code == 4008, "no member is blamed");
  if (good) expect(code == 1000 || code == 1001 || code == 1013, "a good network brings the server's close frame");
}

void world(bool bad_network) {
  chat::rooms rooms(limits.room_members, nullptr);
  counts sent;
  net::tcp_listener listener(server_at);
  ux::task_group server, visitors;
  server.spawn([&] {
    ux::task_group connections;
    listener.serve(connections,
                   [&](net::tcp_stream& client, const std::stop_token& closing) {
                     chat::serve_connection(client, closing, "", rooms, limits);
                   },
                   {.on_error = [](const net::endpoint&, const std::exception_ptr&) {}});
  });
  const bool disturbed = choose(2) != 0, stopped = choose(2) != 0;
  for (int i = 0; i < 3; ++i) visitors.spawn([&, i] { visit(i, sent, !bad_network && !disturbed && !stopped); });
  visitors.spawn([&] {
    if (disturbed) disturb(server_at);
  });
  if (stopped)
    ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(100)));
  else
    visitors.wait();
  listener.close();
  visitors.wait();
  expect(server.wait_for(10s), "the server ends");
  expect(rooms.empty(), "no room is left");
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  return run(argc, argv, [] { world(false); }, [] { world(true); });
}
