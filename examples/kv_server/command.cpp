#include "command.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <unordered_map>

namespace kv_server {
namespace {

constexpr char small(char c) noexcept { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

const command* find_command(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const command*> all;
    for (const auto table : {data_commands(), server_commands()})
      for (const command& each : table) all.emplace(each.name, &each);
    return all;
  }();
  std::string key(name.substr(0, 32));
  std::ranges::transform(key, key.begin(), small);
  const auto place = by_name.find(key);
  return place != by_name.end() && key.size() == name.size() ? place->second : nullptr;
}

[[noreturn]] void refuse_unknown(std::span<const std::string_view> request) {
  std::string text = "ERR unknown command " + shown(request[0]) + ", with args beginning with:";
  for (const std::string_view each : request.subspan(1, std::min<std::size_t>(request.size() - 1, 4)))
    text += ' ' + shown(each);
  throw command_error(text);
}

store::shard_set shards_of(const key_range& keys, std::span<const std::string_view> arguments) {
  if (keys.first == 0) return store::all_shards;
  const int last = keys.last < 0 ? static_cast<int>(arguments.size()) + keys.last : keys.last;
  store::shard_set set = 0;
  for (int i = keys.first; i <= last; i += keys.step) set |= store::shard_of(arguments[static_cast<std::size_t>(i)]);
  return set;
}

struct runner {
  call& request;
  const command& what;

  void operator()(void (*run)(call&)) const { run(request); }
  void operator()(void (*run)(call&, const store::reader&)) const {
    run(request, store::reader(request.home.data, shards_of(what.keys, request.arguments)));
  }
  void operator()(void (*run)(call&, store::writer&)) const {
    store::writer data(request.home.data, shards_of(what.keys, request.arguments));
    run(request, data);
  }
};

void run(call& request) {
  const command* const what = find_command(request.arguments[0]);
  if (!what) refuse_unknown(request.arguments);
  const int given = static_cast<int>(request.arguments.size());
  if (what->arity < 0 ? given < -what->arity : given != what->arity) throw wrong_arguments(what->name);
  std::visit(runner{request, *what}, what->run);
}

}  // namespace

bool is_word(std::string_view text, std::string_view word) noexcept {
  return std::ranges::equal(text, word, {}, small);
}

std::int64_t integer(std::string_view text, const char* refusal) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || std::to_string(value) != text) throw command_error(refusal);
  return value;
}

std::string shown(std::string_view text) {
  std::string line = "'";
  for (const char c : text.substr(0, 64)) line += c >= ' ' && c <= '~' ? c : '?';
  return line + "'";
}

command_error wrong_arguments(std::string_view command) {
  return command_error("ERR wrong number of arguments for '" + std::string(command) + "' command");
}

bool execute(std::span<const std::string_view> arguments, reply_buffer& reply, database& home, client_info& client) {
  home.commands.fetch_add(1, std::memory_order_relaxed);  // counter
  call request{arguments, reply, home, client};
  reply.begin();
  try {
    run(request);
  } catch (const command_error& refused) {
    reply.take_back();
    reply.error(refused.what());
  }
  return !request.quit;
}

}  // namespace kv_server
