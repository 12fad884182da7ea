#include "connection.hpp"

#include <ulexite/net/address.hpp>
#include <ulexite/net/io_wait.hpp>

#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redis {
namespace net = ulexite::net;
namespace {

using reader = std::unique_ptr<redisReader, free_with<redisReaderFree>>;

constexpr int most_elements =
    64 * 1024;  // of an array: a few bytes announce any number, and hiredis allocates them all

redisReplyObjectFunctions* functions_of_hiredis() {
  static redisReplyObjectFunctions* const functions = [] {
    const reader any(redisReaderCreate());
    if (!any) throw std::bad_alloc();
    return any->fn;
  }();
  return functions;
}

// hiredis takes null for a lack of memory. The type of `elements` depends on its version.
template <class Size>
void* create_array(const redisReadTask* task, Size elements) {
  return elements > Size{most_elements} ? nullptr : functions_of_hiredis()->createArray(task, elements);
}

redisReader* create_reader() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions changed = *functions_of_hiredis();
    changed.createArray = create_array;
    return changed;
  }();
  redisReader* const made = redisReaderCreateWithFunctions(&functions);
  if (!made) throw std::bad_alloc();
  return made;
}

}  // namespace

net::endpoint parse_endpoint(std::string_view text) {
  const auto found = net::address::parse(text).resolve();
  if (found.empty())
    throw std::system_error(std::make_error_code(std::errc::address_not_available), "resolving " + std::string(text));
  return found.front();
}

connection::connection(const net::endpoint& to, std::chrono::nanoseconds patience)
    : name_("redis at " + to.str()),
      patience_(patience),
      stream_(net::tcp_stream::connect(to, patience)),
      reader_(create_reader()) {}

void connection::send_words(std::span<const std::string_view> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string_view each : words) {
    texts.push_back(each.data());
    sizes.push_back(each.size());
  }
  char* formatted = nullptr;
  const int size = redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), texts.data(), sizes.data());
  if (size < 0) throw std::bad_alloc();
  const std::unique_ptr<char, free_with<redisFreeCommand>> owner(formatted);
  unsent_.append(formatted, static_cast<std::size_t>(size));
}

void connection::flush() {
  if (unsent_.empty()) return;
  stream_.expires_after(patience_);
  stream_.write(std::exchange(unsent_, {}));
}

reply connection::receive() {
  flush();
  for (std::array<char, 4096> bytes;;) {
    void* complete = nullptr;
    if (redisReaderGetReply(reader_.get(), &complete) != REDIS_OK) {
      const bool too_large = reader_->err == REDIS_ERR_OOM;
      throw error(name_ + ": " + (too_large ? "the reply is too large" : reader_->errstr));
    }
    if (complete) return reply(static_cast<redisReply*>(complete));
    stream_.expires_after(patience_);
    const std::size_t got = stream_.read_some(bytes.data(), bytes.size());
    if (got == 0)
      throw std::system_error(std::make_error_code(std::errc::connection_reset), name_ + " ended the connection");
    redisReaderFeed(reader_.get(), bytes.data(), got);
  }
}

bool connection::is_quiet() const {
  return !net::wait_readable_for(stream_.native_handle(), std::chrono::nanoseconds(0));
}

reply connection::checked(reply given) {
  if (given->type == REDIS_REPLY_ERROR) throw error(std::string(given->str, given->len));
  return given;
}

}  // namespace redis
