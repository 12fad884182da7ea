// The commands that do not touch the data, about the server and the connection.

#include "command.hpp"

#include <unistd.h>

#include <chrono>
#include <string>

namespace kv_server {
namespace {

void ping(call& request) {
  if (request.arguments.size() > 2) throw command_error("ERR wrong number of arguments for 'ping' command");
  if (request.arguments.size() == 2) return request.reply.bulk(request.arguments[1]);
  request.reply.simple("PONG");
}

void echo(call& request) { request.reply.bulk(request.arguments[1]); }

void quit(call& request) {
  request.reply.simple("OK");
  request.quit = true;
}

// This server has only RESP2. A client that asks for another version continues with RESP2.
void hello(call& request) {
  if (request.arguments.size() > 1) {
    const std::string_view version = request.arguments[1];
    if (version.empty() || version.find_first_not_of("0123456789") != version.npos)
      throw command_error("ERR Protocol version is not an integer or out of range");
    if (version != "2") throw command_error("NOPROTO unsupported protocol version");
    if (request.arguments.size() > 2) throw command_error("ERR Syntax error in HELLO");
  }
  request.reply.array(4);
  for (const char* const text : {"server", "kv_server", "proto"}) request.reply.bulk(text);
  request.reply.integer(2);
}

void describe(const command& each, reply_buffer& reply) {
  reply.array(6);
  reply.bulk(each.name);
  reply.integer(each.arity);
  reply.array(each.run.index() == 0 ? 0 : 1);  // flags
  if (each.run.index() != 0) reply.simple(each.run.index() == 1 ? "readonly" : "write");
  for (const int position : {each.keys.first, each.keys.last, each.keys.step}) reply.integer(position);
}

// redis-cli asks for DOCS when it starts, but does not need them.
void command_list(call& request) {
  const auto words = request.arguments.subspan(1);
  const std::size_t count = data_commands().size() + server_commands().size();
  if (words.empty()) {
    request.reply.array(count);
    for (const auto table : {data_commands(), server_commands()})
      for (const command& each : table) describe(each, request.reply);
  } else if (is_word(words[0], "docs")) {
    request.reply.array(0);
  } else if (is_word(words[0], "count") && words.size() == 1) {
    request.reply.integer(static_cast<std::int64_t>(count));
  } else {
    throw command_error("ERR only COMMAND, COMMAND COUNT and COMMAND DOCS are known");
  }
}

// redis-benchmark needs these two.
void config(call& request) {
  if (!is_word(request.arguments[1], "get") || request.arguments.size() != 3)
    throw command_error("ERR only CONFIG GET with one name is known");
  const bool save = is_word(request.arguments[2], "save"), appendonly = is_word(request.arguments[2], "appendonly");
  if (!save && !appendonly) return request.reply.array(0);
  request.reply.array(2);
  request.reply.bulk(save ? "save" : "appendonly");
  request.reply.bulk(save ? "" : "no");
}

void info(call& request, const store::reader& data) {
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(ulexite::steady_clock::now() - request.home.start);
  std::string text = "# Server\r\nserver:kv_server";
  const auto say = [&text](const char* name, auto value) { text += name + std::to_string(value); };
  say("\r\nprocess_id:", ::getpid());
  say("\r\nuptime_in_seconds:", up.count());
  say("\r\n\r\n# Stats\r\ntotal_connections_received:", request.home.connections.load(std::memory_order_relaxed));
  say("\r\ntotal_commands_processed:", request.home.commands.load(std::memory_order_relaxed));  // counters
  say("\r\n\r\n# Keyspace\r\ndb0:keys=", data.size());
  say(",expires=", data.expiring());
  request.reply.bulk(text + "\r\n");
}

}  // namespace

std::span<const command> server_commands() {
  static constexpr command all[] = {
      {"ping", -1, {}, ping},
      {"echo", 2, {}, echo},
      {"quit", -1, {}, quit},
      {"hello", -1, {}, hello},
      {"command", -1, {}, command_list},
      {"config", -2, {}, config},
      {"info", -1, {}, info},
  };
  return all;
}

}  // namespace kv_server
