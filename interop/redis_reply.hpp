#pragma once

// What a redis answers, and what goes wrong with commands. Included by redis.hpp.

#include <hiredis/hiredis.h>
#include <ulexite/base/error.hpp>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::redis {

// A reply that is an error, an answer that is no reply, or a reply of another kind than the caller expects.
class reply_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The server refused a command: what() is its text, such as "WRONGTYPE Operation against a key ...".
class server_error : public reply_error {
 public:
  using reply_error::reply_error;
  // The first word: "WRONGTYPE", "NOSCRIPT", or "ERR" for many.
  [[nodiscard]] std::string_view code() const noexcept {
    const std::string_view text = what();
    return text.substr(0, text.find(' '));
  }
  // Whether the command may succeed later: the server loads its data, runs a long script, or changes its role.
  [[nodiscard]] bool may_succeed_later() const noexcept {
    for (const std::string_view each : {"LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN"})
      if (code() == each) return true;
    return false;
  }
};

// A part of the exceptions of commands that got no reply: catch those, or this for all of them. Two of them are
// operation_cancelled too, so a loop should let them through: after a stop each further command throws again.
class unanswered {
 public:
  // Why there is no reply, in words, as std::exception::what.
  [[nodiscard]] virtual const char* what() const noexcept = 0;
  // Whether the server may have carried a command out. If not, it did not have the whole command, so that it is safe to
  // repeat it.
  [[nodiscard]] bool sent() const noexcept { return sent_; }

 protected:
  explicit unanswered(bool sent) noexcept : sent_(sent) {}
  virtual ~unanswered() = default;

 private:
  bool sent_;
};

// The connection could not be made, ended or failed, or the server was silent for too long (std::errc::timed_out).
class connection_lost : public std::system_error, public unanswered {
 public:
  // For use by this library.
  connection_lost(const std::error_code& code, const std::string& text, bool sent)
      : std::system_error(code, text), unanswered(sent) {}
  // As unanswered::what.
  [[nodiscard]] const char* what() const noexcept override { return std::system_error::what(); }
};

// The fiber's deadline passed before the reply arrived.
class late : public deadline_exceeded, public unanswered {
 public:
  // For use by this library.
  explicit late(bool sent) : unanswered(sent) {}
  // As unanswered::what.
  [[nodiscard]] const char* what() const noexcept override { return deadline_exceeded::what(); }
};

// The fiber was asked to stop before the reply arrived.
class stopped : public operation_cancelled, public unanswered {
 public:
  // For use by this library.
  explicit stopped(bool sent) : unanswered(sent) {}
  // As unanswered::what.
  [[nodiscard]] const char* what() const noexcept override { return operation_cancelled::what(); }
};

// A reply, or an element of one, that somebody else owns. Functions that expect a kind throw reply_error, which says
// what the reply is instead.
class reply_view {
 public:
  // The view of a reply of hiredis.
  explicit reply_view(const redisReply& raw) noexcept : raw_(&raw) {}

  // The kind of the reply. Texts are strings and statuses ("OK"). An element of a list may be an error.
  [[nodiscard]] bool is_null() const noexcept { return raw_->type == REDIS_REPLY_NIL; }
  [[nodiscard]] bool is_error() const noexcept { return raw_->type == REDIS_REPLY_ERROR; }
  [[nodiscard]] bool is_integer() const noexcept { return raw_->type == REDIS_REPLY_INTEGER; }
  [[nodiscard]] bool is_list() const noexcept { return raw_->type == REDIS_REPLY_ARRAY; }
  [[nodiscard]] bool is_text() const noexcept {
    return raw_->type == REDIS_REPLY_STRING || raw_->type == REDIS_REPLY_STATUS;
  }

  // The bytes of a text or an error. They may be any. Valid as long as the reply.
  [[nodiscard]] std::string_view text() const {
    if (!is_text() && !is_error()) refuse("a text");
    return {raw_->str, raw_->len};
  }
  // The integer. A text is none, even "5", which GET returns.
  [[nodiscard]] long long integer() const {
    if (!is_integer()) refuse("an integer");
    return raw_->integer;
  }
  // The number of elements of a list; 0 for null, which some commands return instead of an empty list.
  [[nodiscard]] std::size_t size() const {
    if (!is_list() && !is_null()) refuse("a list");
    return is_null() ? 0 : raw_->elements;
  }
  // An element of a list.
  [[nodiscard]] reply_view operator[](std::size_t i) const {
    if (i >= size()) refuse("a list of at least " + std::to_string(i + 1));
    return reply_view(*raw_->element[i]);
  }

  // Passes over the elements of a list.
  class iterator {
   public:
    reply_view operator*() const noexcept { return reply_view(**at_); }
    iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    friend bool operator==(const iterator&, const iterator&) noexcept = default;

   private:
    friend reply_view;
    explicit iterator(redisReply* const* at) noexcept : at_(at) {}

    redisReply* const* at_;
  };
  // The elements of a list; none for null.
  [[nodiscard]] iterator begin() const { return iterator(size() == 0 ? nullptr : raw_->element); }
  [[nodiscard]] iterator end() const { return iterator(size() == 0 ? nullptr : raw_->element + size()); }

  // Throws server_error if the reply is an error.
  void check() const {
    if (is_error()) throw server_error(std::string(text()));
  }
  // What the reply is, in words, for messages.
  [[nodiscard]] std::string describe() const {
    if (is_null()) return "null";
    if (is_integer()) return "the integer " + std::to_string(raw_->integer);
    if (is_list()) return "a list of " + std::to_string(raw_->elements);
    if (!is_text() && !is_error()) return "a reply of type " + std::to_string(raw_->type);
    constexpr std::size_t most = 100;
    return (is_error() ? "the error \"" : "the text \"") + std::string(text().substr(0, most)) +
           (raw_->len > most ? "...\"" : "\"");
  }
  // The reply of hiredis.
  [[nodiscard]] const redisReply& native_handle() const noexcept { return *raw_; }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    throw reply_error("ulexite: redis: expected " + expected + ", and got " + describe());
  }
  const redisReply* raw_;
};

// A reply with its memory. Movable; a moved-from reply may only be destroyed.
class reply : public reply_view {
 public:
  // Takes over a reply of hiredis.
  explicit reply(redisReply* raw) noexcept : reply_view(*raw), owned_(raw) {}

 private:
  struct deleter {
    void operator()(redisReply* raw) const noexcept { freeReplyObject(raw); }
  };
  std::unique_ptr<redisReply, deleter> owned_;
};

}  // namespace ulexite::redis
