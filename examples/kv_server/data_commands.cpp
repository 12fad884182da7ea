// The commands that read and write the data. Texts of errors are those of Redis: clients know them.

#include "command.hpp"
#include "glob.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace kv_server {
namespace {

using std::chrono::milliseconds;
using limits = std::numeric_limits<std::int64_t>;

// `count` units after now.
instant expiry_after(std::int64_t count, milliseconds unit, instant now, std::string_view command) {
  const auto refuse = [&] {
    return command_error("ERR invalid expire time in '" + std::string(command) + "' command");
  };
  if (count > limits::max() / unit.count() || count < limits::min() / unit.count()) throw refuse();
  if (unit * count >= never - now) throw refuse();
  return now + unit * count;
}

// ---- values ----
void get(call& request, const store::reader& data) {
  const entry* const found = data.find(request.arguments[1]);
  found ? request.reply.bulk(found->value) : request.reply.null();
}

void mget(call& request, const store::reader& data) {
  request.reply.array(request.arguments.size() - 1);
  for (const std::string_view key : request.arguments.subspan(1)) {
    const entry* const found = data.find(key);
    found ? request.reply.bulk(found->value) : request.reply.null();
  }
}

struct set_options {
  bool if_none = false, if_any = false;
  std::optional<instant> expiry{};
};

set_options parse_set_options(std::span<const std::string_view> words, instant now) {
  set_options given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool seconds = is_word(words[i], "ex");
    if (is_word(words[i], "nx") && !given.if_any) {
      given.if_none = true;
    } else if (is_word(words[i], "xx") && !given.if_none) {
      given.if_any = true;
    } else if ((seconds || is_word(words[i], "px")) && !given.expiry && i + 1 < words.size()) {
      const std::int64_t count = integer(words[++i]);
      if (count <= 0) throw command_error("ERR invalid expire time in 'set' command");
      given.expiry = expiry_after(count, milliseconds(seconds ? 1000 : 1), now, "set");
    } else {
      throw command_error("ERR syntax error");
    }
  }
  return given;
}

void set(call& request, store::writer& data) {
  const std::string_view key = request.arguments[1];
  const set_options options = parse_set_options(request.arguments.subspan(3), data.now());
  if ((options.if_none || options.if_any) && (data.find(key) != nullptr) != options.if_any) return request.reply.null();
  data.set(key, request.arguments[2], options.expiry.value_or(never));
  request.reply.simple("OK");
}

void mset(call& request, store::writer& data) {
  if (request.arguments.size() % 2 == 0) throw wrong_arguments("mset");
  for (std::size_t i = 1; i < request.arguments.size(); i += 2)
    data.set(request.arguments[i], request.arguments[i + 1]);
  request.reply.simple("OK");
}

void add(call& request, store::writer& data, std::int64_t change) {
  const std::string_view key = request.arguments[1];
  const entry* const found = data.find(key);
  const std::int64_t before = found ? integer(found->value) : 0;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(before, change, &sum)) throw command_error("ERR increment or decrement would overflow");
  found ? data.set_value(key, std::to_string(sum)) : data.set(key, std::to_string(sum));
  request.reply.integer(sum);
}

void incr(call& request, store::writer& data) { add(request, data, 1); }
void decr(call& request, store::writer& data) { add(request, data, -1); }
void incrby(call& request, store::writer& data) { add(request, data, integer(request.arguments[2])); }

// ---- keys ----
void del(call& request, store::writer& data) {
  std::int64_t count = 0;
  for (const std::string_view key : request.arguments.subspan(1)) count += data.erase(key);
  request.reply.integer(count);
}

void exists(call& request, const store::reader& data) {
  std::int64_t count = 0;
  for (const std::string_view key : request.arguments.subspan(1)) count += data.find(key) != nullptr;
  request.reply.integer(count);
}

void keys(call& request, const store::reader& data) {
  const std::string_view pattern = request.arguments[1];
  if (pattern.size() > 256) throw command_error("ERR the pattern is longer than 256 bytes");  // it costs time
  std::size_t count = 0;
  data.for_each_key([&](std::string_view key) { count += matches_glob(pattern, key); });
  request.reply.array(count);
  data.for_each_key([&](std::string_view key) {
    if (matches_glob(pattern, key)) request.reply.bulk(key);
  });
}

void dbsize(call& request, const store::reader& data) { request.reply.integer(static_cast<std::int64_t>(data.size())); }

void flushall(call& request, store::writer& data) {
  const auto words = request.arguments.subspan(1);
  if (words.size() > 1 || (words.size() == 1 && !is_word(words[0], "sync") && !is_word(words[0], "async")))
    throw command_error("ERR syntax error");
  data.clear();
  request.reply.simple("OK");
}

// ---- expiry ----
void expire_by(call& request, store::writer& data, milliseconds unit, std::string_view command) {
  const std::string_view key = request.arguments[1];
  const instant expiry = expiry_after(integer(request.arguments[2]), unit, data.now(), command);
  const bool found = data.find(key) != nullptr;
  if (found && expiry <= data.now())
    data.erase(key);
  else if (found)
    data.set_expiry(key, expiry);
  request.reply.integer(found);
}

void expire(call& request, store::writer& data) { expire_by(request, data, milliseconds(1000), "expire"); }
void pexpire(call& request, store::writer& data) { expire_by(request, data, milliseconds(1), "pexpire"); }

void persist(call& request, store::writer& data) {
  const entry* const found = data.find(request.arguments[1]);
  const bool expires = found && found->expiry != never;
  if (expires) data.set_expiry(request.arguments[1], never);
  request.reply.integer(expires);
}

// -2: no such key, -1: it does not expire.
std::int64_t time_left(std::string_view key, const store::reader& data) {
  const entry* const found = data.find(key);
  if (!found) return -2;
  return found->expiry == never ? -1 : (found->expiry - data.now()).count();
}

void pttl(call& request, const store::reader& data) { request.reply.integer(time_left(request.arguments[1], data)); }

void ttl(call& request, const store::reader& data) {
  const std::int64_t left = time_left(request.arguments[1], data);
  request.reply.integer(left < 0 ? left : left / 1000 + (left % 1000 >= 500));
}

}  // namespace

std::span<const command> data_commands() {
  static constexpr key_range one{1, 1, 1}, every{1, -1, 1}, pairs{1, -1, 2}, none{};
  static constexpr command all[] = {
      {"get", 2, one, get},       {"set", -3, one, set},        {"mget", -2, every, mget},
      {"mset", -3, pairs, mset},  {"incr", 2, one, incr},       {"decr", 2, one, decr},
      {"incrby", 3, one, incrby}, {"del", -2, every, del},      {"exists", -2, every, exists},
      {"keys", 2, none, keys},    {"dbsize", 1, none, dbsize},  {"flushall", -1, none, flushall},
      {"expire", 3, one, expire}, {"pexpire", 3, one, pexpire}, {"persist", 2, one, persist},
      {"ttl", 2, one, ttl},       {"pttl", 2, one, pttl},
  };
  return all;
}

}  // namespace kv_server
