#pragma once

// A connection to redis. Included by redis.hpp.

#include <ulexite/interop/redis_reader.hpp>
#include <ulexite/net/address.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/tcp.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulexite::redis {

// A word of a command: a text of any bytes, or a number. It refers to the text.
class argument {
 public:
  // A std::string, std::string_view or literal.
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  argument(const Text& text) noexcept  // NOLINT(google-explicit-constructor): a word of a command
      : text_(static_cast<std::string_view>(text)) {}
  // A number, in decimal digits.
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool> && !std::same_as<Number, char>)
  argument(Number number) noexcept {  // NOLINT(google-explicit-constructor): a word of a command
    size_ = static_cast<std::size_t>(std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr -
                                     digits_.data());
  }

  // The bytes. Valid as long as the text, for a number as long as this object.
  [[nodiscard]] std::string_view text() const noexcept {
    return size_ == 0 ? text_ : std::string_view(digits_.data(), size_);
  }

 private:
  std::string_view text_;
  std::array<char, 48> digits_{};
  std::size_t size_ = 0;  // of a number; 0: it is a text
};

// A stream over the connection's own, such as TLS: see layer_of.
class layer {
 public:
  virtual ~layer() = default;
  virtual std::size_t read_some(void* data, std::size_t size, std::error_code& error) = 0;    // as tcp_stream's
  virtual std::size_t write(const void* data, std::size_t size, std::error_code& error) = 0;  // as tcp_stream's
};

// A layer that is a Stream:
//
//   options.layer = [&context](ulexite::net::tcp_stream& under) {
//     using tls = ulexite::tls_stream<ulexite::net::tcp_stream>;
//     return std::make_unique<ulexite::redis::layer_of<tls>>(under, context, "redis.example.org");
//   };
template <class Stream>
class layer_of final : public layer {
 public:
  // Makes the stream of these arguments.
  template <class... Arguments>
  explicit layer_of(Arguments&&... arguments) : stream_(std::forward<Arguments>(arguments)...) {}
  // As layer says.
  std::size_t read_some(void* data, std::size_t size, std::error_code& error) override {
    return stream_.read_some(data, size, error);
  }
  // As layer says.
  std::size_t write(const void* data, std::size_t size, std::error_code& error) override {
    return stream_.write(data, size, error);
  }

 private:
  Stream stream_;
};

// How to make and use a connection.
struct connection_options {
  // The time limit of the connect, of each flush, and of the server's silence while a reply is awaited.
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
  std::string user{};      // for AUTH; empty: "default"
  std::string password{};  // for AUTH, which is sent if it is not empty
  int database = 0;        // for SELECT, which is sent if it is not 0
  std::string name{};      // for CLIENT SETNAME, which is sent if it is not empty
  reply_limits limits{};   // of each reply
  // Makes the layer of a new connection. None: the bytes go over TCP, or the Unix socket, as they are.
  std::function<std::unique_ptr<redis::layer>(net::tcp_stream&)> layer{};
};

// One connection, in RESP2. Waits are cancellation points. Functions that wait throw connection_lost, late or stopped:
// see unanswered::sent. One fiber may use it at a time.
//
// A wait for a reply that throws late or stopped leaves the reply to the next receive(). All other exceptions, except
// server_error and usage_error, end the connection. Then each function fails: make a new one.
class connection {
 public:
  // Connects, to the first endpoint of a name that answers, and greets the server as the options say. Also throws
  // server_error, for a wrong password for example.
  explicit connection(const net::address& to, connection_options options = {})
      : name_("redis at " + to.str()), options_(std::move(options)), reader_(options_.limits) {
    std::error_code failed;
    stream_ = net::tcp_stream::connect(to, {.timeout = options_.patience}, failed);
    if (failed) fail(failed, "ulexite: connecting to " + to.str(), false);
    if (options_.layer) layer_ = options_.layer(stream_);
    greet();
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Sends a command, its name and its arguments, and waits for the reply. Throws server_error if the reply is an error.
  // Throws usage_error if replies to earlier commands were not received.
  template <class... Words>
    requires(std::constructible_from<argument, const Words&> && ...)
  reply command(const Words&... words) {
    return command(std::array<argument, sizeof...(Words)>{argument(words)...});
  }
  reply command(std::span<const argument> words) {
    reply got = exchange(words);
    got.check();
    return got;
  }
  // As command, but returns an error as any reply.
  reply exchange(std::span<const argument> words) {
    if (unread() != 0)
      throw usage_error("ulexite: redis: a command, while replies to " + std::to_string(unread()) +
                        " earlier ones were not received");
    send(words);
    return receive();
  }

  // Adds a command, for a pipeline: the next flush() or receive() sends all. Never waits.
  template <class... Words>
    requires(std::constructible_from<argument, const Words&> && ...)
  void send(const Words&... words) {
    send(std::array<argument, sizeof...(Words)>{argument(words)...});
  }
  void send(std::span<const argument> words) {
    if (words.empty()) throw usage_error("ulexite: redis: a command without words");
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const argument& each : words) {
      texts.push_back(each.text().data());
      sizes.push_back(each.text().size());
    }
    char* formatted = nullptr;
    const auto size = redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), texts.data(), sizes.data());
    if (size < 0) throw std::bad_alloc();
    const std::unique_ptr<char, command_deleter> owner(formatted);
    unsent_.append(formatted, static_cast<std::size_t>(size));
    ++added_;
  }

  // Sends the added commands. When it throws, none of them stays added.
  void flush() {
    if (unsent_.empty()) return;
    const std::string text = std::exchange(unsent_, {});
    const std::size_t before = std::exchange(awaited_, awaited_ + added_), commands = std::exchange(added_, 0);
    stream_.writes_expire_after(options_.patience);
    std::error_code failed;
    const std::size_t written = layer_ ? layer_->write(text.data(), text.size(), failed) : stream_.write(text, failed);
    if (!failed) return;
    const bool none = written == 0 && !layer_;  // what a layer has written nobody knows
    awaited_ = before;
    if (!none || failed.category() != error_category()) stream_.close();
    // Of a single command redis lacks the end.
    fail(failed, "ulexite: sending to " + name_, before != 0 || layer_ || (commands > 1 && !none));
  }

  // Waits for the next reply, in the order of the commands, and returns it, also if it is an error: see
  // reply_view::check. Calls flush() first. Throws reply_error for bytes that are no reply, and for one beyond the
  // limits.
  reply receive() {
    flush();
    for (;;) {
      if (auto next = next_reply()) return counted(std::move(*next));
      stream_.reads_expire_after(options_.patience);
      if (read_more()) continue;
      stream_.close();
      fail(std::make_error_code(std::errc::timed_out), "ulexite: waiting for " + name_, true);
    }
  }
  // As receive, but waits for `time` altogether instead of for the options' patience. Returns nullopt if it passed
  // first. For blocking commands, and for messages.
  std::optional<reply> receive_for(relative_timeout time) {
    flush();
    auto got = read_for(time);
    if (got) return counted(std::move(*got));
    return got;
  }

  // Commands, sent or not, whose replies were not received yet.
  [[nodiscard]] std::size_t unread() const noexcept { return awaited_ + added_; }
  // Whether it can take a command: it is open, with no reply to receive. If the peer has ended it, it is not. Never
  // waits.
  [[nodiscard]] bool usable() const {
    return stream_.is_open() && unread() == 0 && reader_.empty() &&
           net::wait_fd(stream_.native_handle(), net::interest::read, std::chrono::nanoseconds(0)) ==
               net::interest::none;
  }

 private:
  friend class subscriber;
  struct command_deleter {
    void operator()(char* text) const noexcept { redisFreeCommand(text); }
  };

  void greet() {
    if (layer_) {  // makes the handshake of TLS, before a command of the user's
      stream_.expires_after(options_.patience);
      send("PING");
      receive();  // perhaps an error: a password is wanted first
    }
    if (!options_.password.empty()) {
      if (options_.user.empty()) send("AUTH", options_.password);
      if (!options_.user.empty()) send("AUTH", options_.user, options_.password);
    }
    if (options_.database != 0) send("SELECT", options_.database);
    if (!options_.name.empty()) send("CLIENT", "SETNAME", options_.name);
    while (unread() != 0) receive().check();
    greeted_ = true;
  }

  // Does not touch what send() and flush() use: a subscriber reads while another fiber sends.
  std::optional<reply> read_for(relative_timeout time) {
    stream_.reads_expire_after(time);
    for (;;) {
      if (auto next = next_reply()) return next;
      if (!read_more()) return std::nullopt;
    }
  }
  std::optional<reply> next_reply() try {
    redisReply* const next = reader_.next();
    return next ? std::optional<reply>(next) : std::nullopt;
  } catch (const reply_error& why) {
    stream_.close();
    throw reply_error("ulexite: " + name_ + ": " + why.what());
  } catch (...) {
    stream_.close();
    throw;
  }
  // False if the stream's limit has passed.
  bool read_more() {
    std::array<char, 4096> bytes;
    std::error_code failed;
    const std::size_t got = layer_ ? layer_->read_some(bytes.data(), bytes.size(), failed)
                                   : stream_.read_some(bytes.data(), bytes.size(), failed);
    if (failed && failed.category() != error_category()) {
      if (failed == std::errc::timed_out) return false;
      stream_.close();
    }
    if (failed) fail(failed, "ulexite: reading from " + name_, true);
    if (got == 0) {
      stream_.close();
      fail(std::make_error_code(std::errc::connection_reset), "ulexite: " + name_ + " ended the connection", true);
    }
    try {
      reader_.feed(bytes.data(), got);
    } catch (...) {
      stream_.close();
      throw;
    }
    return true;
  }
  reply counted(reply got) noexcept {
    if (awaited_ != 0) --awaited_;  // messages of a subscription are no replies to commands
    return got;
  }
  [[noreturn]] void fail(const std::error_code& why, const std::string& text, bool sent) const {
    if (why == errc::deadline_exceeded) throw late(sent && greeted_);
    if (why == errc::cancelled) throw stopped(sent && greeted_);
    throw connection_lost(why, text, sent && greeted_);
  }

  const std::string name_;
  const connection_options options_;
  net::tcp_stream stream_;
  std::unique_ptr<redis::layer> layer_;
  detail::reply_reader reader_;
  std::string unsent_;
  std::size_t added_ = 0;    // commands in unsent_
  std::size_t awaited_ = 0;  // commands that were sent and not answered
  bool greeted_ = false;     // before, no command of the user's was sent
};

}  // namespace ulexite::redis
