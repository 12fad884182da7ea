#include "counters.hpp"

#include <ulexite/base/error.hpp>

#include <array>
#include <charconv>
#include <system_error>
#include <vector>

namespace redis_counter {
namespace {

constexpr std::string_view prefix = "counter:";  // of the keys

std::string key_of(std::string_view name) { return std::string(prefix).append(name); }

std::string_view text_of(const redisReply* reply) { return {reply->str, reply->len}; }

failure error_in(const redisReply* reply) {
  const std::string text(text_of(reply));
  const auto says = [&](const char* part) { return text.find(part) != text.npos; };
  const bool unfit = says("WRONGTYPE") || says("not an integer") || says("overflow");
  return failure(unfit ? failure::unfit : failure::refused, "redis refused: " + text);
}

// nullopt if there is no value, or it is not a number.
std::optional<std::int64_t> number_in(const redisReply* reply) {
  if (reply->type != REDIS_REPLY_STRING) return std::nullopt;
  const std::string_view text = text_of(reply);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The elements of an array. Throws failure if it is something else.
std::span<redisReply* const> elements_of(const redisReply* reply) {
  if (reply->type != REDIS_REPLY_ARRAY)
    throw failure(failure::broken, "redis answered with something else than a list");
  return {reply->element, reply->elements};
}

}  // namespace

// Before flush() has returned, redis does not have the whole command, and so cannot have executed it.
redis::reply counters::command(std::span<const std::string_view> words) {
  bool sent = false;
  try {
    pool::lease redis = connections_.acquire();
    redis->send_words(words);
    redis->flush();
    sent = true;
    redis::reply reply = redis->receive();
    redis.hand_back();
    if (reply->type == REDIS_REPLY_ERROR) throw error_in(reply.get());
    return reply;
  } catch (const ulexite::deadline_exceeded&) {
    if (sent) throw failure(failure::late, "redis did not answer in time");
    throw failure(failure::unreachable, connections_.trouble());
  } catch (const ulexite::operation_cancelled&) {
    throw;
  } catch (const std::system_error& error) {
    throw failure(sent ? failure::broken : failure::unreachable, error.what());
  } catch (const redis::error& error) {  // no reply at all
    throw failure(failure::broken, error.what());
  }
}

std::int64_t counters::add(std::string_view name, std::int64_t by) {
  return command(std::array<std::string_view, 3>{"INCRBY", key_of(name), std::to_string(by)})->integer;
}

std::optional<std::int64_t> counters::get(std::string_view name) {
  const redis::reply reply = command(std::array<std::string_view, 2>{"GET", key_of(name)});
  if (reply->type == REDIS_REPLY_NIL) return std::nullopt;
  const auto value = number_in(reply.get());
  if (!value) throw failure(failure::unfit, "what redis has is no whole number: " + std::string(text_of(reply.get())));
  return value;
}

bool counters::remove(std::string_view name) {
  return command(std::array<std::string_view, 2>{"DEL", key_of(name)})->integer == 1;
}

std::map<std::string, std::int64_t> counters::all() {
  std::map<std::string, std::int64_t> found;  // SCAN may return a key twice
  std::string cursor = "0";
  do {
    const std::string pattern = key_of("*");
    const redis::reply page =
        command(std::array<std::string_view, 6>{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
    const auto parts = elements_of(page.get());
    if (parts.size() != 2) throw failure(failure::broken, "redis answered SCAN with a list of another length");
    cursor = text_of(parts[0]);
    std::vector<std::string_view> words{"MGET"};
    for (const redisReply* key : elements_of(parts[1])) words.push_back(text_of(key));
    if (words.size() == 1) continue;
    const redis::reply values = command(words);
    std::size_t at = 0;
    for (const redisReply* each : elements_of(values.get())) {
      const std::string_view key = words.at(++at);
      if (const auto value = number_in(each)) found.emplace(key.substr(prefix.size()), *value);
    }
  } while (cursor != "0");
  return found;
}

void counters::ping() { command(std::array<std::string_view, 1>{"PING"}); }

}  // namespace redis_counter
