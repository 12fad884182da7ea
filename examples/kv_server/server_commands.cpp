// The commands that do not touch the data, about the server and the connection.

#include "command.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace kv_server {
namespace {

constexpr const char* as_redis = "7.0.0";  // whose replies these are; clients ask for it

void ping(call& request) {
  if (request.arguments.size() > 2) throw wrong_arguments("ping");
  if (request.arguments.size() == 2) return request.reply.bulk(request.arguments[1]);
  request.reply.simple("PONG");
}

void echo(call& request) { request.reply.bulk(request.arguments[1]); }

void quit(call& request) {
  request.reply.simple("OK");
  request.quit = true;
}

// For a client's name, which lists of clients show.
void require_printable(std::string_view text, std::string_view what) {
  if (!std::ranges::all_of(text, [](char c) { return '!' <= c && c <= '~'; }))
    throw command_error("ERR " + std::string(what) + " cannot contain spaces, newlines or special characters.");
}

struct greeting {
  int protocol;
  std::string_view user = "default";
  std::optional<std::string_view> name{};
};

greeting parse_greeting(const call& request) {
  const auto words = request.arguments;
  greeting given{request.reply.protocol};
  if (words.size() > 1) {
    const std::int64_t version = integer(words[1], "ERR Protocol version is not an integer or out of range");
    if (version != 2 && version != 3) throw command_error("NOPROTO unsupported protocol version");
    given.protocol = static_cast<int>(version);
  }
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (is_word(words[i], "auth") && i + 2 < words.size()) {
      given.user = words[i + 1];
      i += 2;
    } else if (is_word(words[i], "setname") && i + 1 < words.size()) {
      given.name = words[++i];
      require_printable(*given.name, "Client names");
    } else {
      throw command_error("ERR Syntax error in HELLO option " + shown(words[i]));
    }
  }
  return given;
}

// There is only the user of a Redis without passwords, who may give any.
void hello(call& request) {
  const greeting given = parse_greeting(request);
  if (given.user != "default") throw command_error("WRONGPASS invalid username-password pair or user is disabled.");
  if (given.name) request.client.name = *given.name;
  reply_buffer& reply = request.reply;
  reply.protocol = given.protocol;
  reply.map(7);
  for (const char* const text : {"server", "kv_server", "version", as_redis, "proto"}) reply.bulk(text);
  reply.integer(reply.protocol);
  reply.bulk("id");
  reply.integer(static_cast<std::int64_t>(request.client.id));
  for (const char* const text : {"mode", "standalone", "role", "master", "modules"}) reply.bulk(text);
  reply.array(0);
}

// What clients say and ask when they connect. SETINFO is of Redis 7.2; it is not kept, because no command shows it.
void client(call& request) {
  const auto words = request.arguments;
  const auto is = [&](std::string_view name, std::size_t size) {
    if (!is_word(words[1], name)) return false;
    if (words.size() != size) throw wrong_arguments("client|" + std::string(name));
    return true;
  };
  if (is("id", 2)) return request.reply.integer(static_cast<std::int64_t>(request.client.id));
  if (is("getname", 2))
    return request.client.name.empty() ? request.reply.null() : request.reply.bulk(request.client.name);
  if (is("setname", 3)) {
    require_printable(words[2], "Client names");
    request.client.name = words[2];
  } else if (is("setinfo", 4)) {
    if (!is_word(words[2], "lib-name") && !is_word(words[2], "lib-ver"))
      throw command_error("ERR Unrecognized option " + shown(words[2]));
    require_printable(words[3], words[2]);
  } else {
    throw command_error("ERR unknown subcommand " + shown(words[1]) + ". Try CLIENT HELP.");
  }
  request.reply.simple("OK");
}

void describe(const command& each, reply_buffer& reply) {
  reply.array(6);
  reply.bulk(each.name);
  reply.integer(each.arity);
  reply.set(each.run.index() == 0 ? 0 : 1);  // flags
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
    request.reply.map(0);
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
  if (!save && !appendonly) return request.reply.map(0);
  request.reply.map(1);
  request.reply.bulk(request.arguments[2]);
  request.reply.bulk(save ? "" : "no");
}

void info(call& request, const store::reader& data) {
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(ulexite::steady_clock::now() - request.home.start);
  std::string text = "# Server\r\nserver:kv_server\r\nredis_version:" + std::string(as_redis);
  text += "\r\nredis_mode:standalone";
  const auto say = [&text](const char* name, auto value) { text += name + std::to_string(value); };
  say("\r\nprocess_id:", ::getpid());
  say("\r\nuptime_in_seconds:", up.count());
  say("\r\n\r\n# Stats\r\ntotal_connections_received:", request.home.connections.load(std::memory_order_relaxed));
  say("\r\ntotal_commands_processed:", request.home.commands.load(std::memory_order_relaxed));  // counters
  text += "\r\n\r\n# Replication\r\nrole:master";
  say("\r\n\r\n# Keyspace\r\ndb0:keys=", data.size());
  say(",expires=", data.expiring());
  request.reply.verbatim(text + "\r\n");
}

}  // namespace

std::span<const command> server_commands() {
  static constexpr command all[] = {
      {"ping", -1, {}, ping},     {"echo", 2, {}, echo},      {"quit", -1, {}, quit},
      {"hello", -1, {}, hello},   {"client", -2, {}, client}, {"command", -1, {}, command_list},
      {"config", -2, {}, config}, {"info", -1, {}, info},
  };
  return all;
}

}  // namespace kv_server
