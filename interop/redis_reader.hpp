#pragma once

// Parses the replies of redis. Included by redis.hpp.

#include <ulexite/interop/redis_reply.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <string>

namespace ulexite::redis {

// How large a reply may be.
struct reply_limits {
  std::size_t bytes = std::size_t{64} << 20;    // on the wire
  std::size_t elements = std::size_t{1} << 20;  // of all its lists together
};

}  // namespace ulexite::redis

namespace ulexite::redis::detail {

// Parses replies out of bytes. Stays where it is, because hiredis has its address.
class reply_reader {
 public:
  explicit reply_reader(const reply_limits& limits) : limits_(limits), reader_(create()) { reader_->privdata = this; }
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;

  // Adds bytes that have arrived. Throws std::bad_alloc.
  void feed(const char* bytes, std::size_t size) {
    if (redisReaderFeed(reader_.get(), bytes, size) != REDIS_OK) throw std::bad_alloc();
    bytes_ += size;
  }
  // The next reply; null if more bytes are needed. Throws reply_error for bytes that are no reply, and for one that is
  // too large. Then the reader is of no further use.
  [[nodiscard]] redisReply* next() {
    void* complete = nullptr;
    if (redisReaderGetReply(reader_.get(), &complete) != REDIS_OK) {
      if (!too_large_.empty()) throw reply_error("the reply is too large: " + too_large_);
      if (reader_->err == REDIS_ERR_OOM) throw std::bad_alloc();
      throw reply_error(std::string("what arrived is no reply: ") + reader_->errstr);
    }
    if (!complete) {
      if (bytes_ <= limits_.bytes) return nullptr;
      throw reply_error("the reply is too large: more than " + std::to_string(limits_.bytes) + " bytes");
    }
    bytes_ = reader_->len - reader_->pos;  // of the replies behind it
    elements_ = 0;
    return static_cast<redisReply*>(complete);
  }
  // Whether no byte of a further reply has arrived.
  [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }

 private:
  struct deleter {
    void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
  };
  using owned_reader = std::unique_ptr<redisReader, deleter>;

  static constexpr int deepest =
      16;  // of lists in lists: hiredis frees them by recursion, and a fiber's stack is small

  static owned_reader checked(redisReader* made) {
    if (!made) throw std::bad_alloc();
    return owned_reader(made);
  }
  static const redisReplyObjectFunctions& functions_of_hiredis() {
    static const redisReplyObjectFunctions functions = *checked(redisReaderCreate())->fn;
    return functions;
  }
  static owned_reader create() {
    static redisReplyObjectFunctions functions = [] {
      redisReplyObjectFunctions changed = functions_of_hiredis();
      changed.createArray = create_array;
      return changed;
    }();
    return checked(redisReaderCreateWithFunctions(&functions));
  }
  // A few bytes announce any number of elements, and hiredis allocates memory for them all. It takes null for a lack of
  // memory. The type of `elements` depends on its version.
  template <class Size>
  static void* create_array(const redisReadTask* task, Size elements) {
    reply_reader& self = *static_cast<reply_reader*>(task->privdata);
    self.elements_ += static_cast<std::size_t>(elements);
    int depth = 0;
    for (const redisReadTask* each = task; each; each = each->parent) ++depth;
    const reply_limits& limits = self.limits_;
    if (self.elements_ > limits.elements)
      self.too_large_ = "more than " + std::to_string(limits.elements) + " elements";
    if (depth > deepest) self.too_large_ = "lists in more than " + std::to_string(deepest) + " lists";
    return self.too_large_.empty() ? functions_of_hiredis().createArray(task, elements) : nullptr;
  }

  const reply_limits limits_;
  std::size_t bytes_ = 0;     // that have arrived since the end of the last reply
  std::size_t elements_ = 0;  // announced by the lists of the reply under way
  std::string too_large_;     // why the reply under way is refused; empty if it is not
  owned_reader reader_;
};

}  // namespace ulexite::redis::detail
