#pragma once

// Commands, and their execution.

#include "reply.hpp"
#include "store.hpp"

#include <ulexite/runtime/wait/suspend.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace kv_server {

// Shared by all connections.
struct database {
  store data;
  const ulexite::steady_clock::time_point start = ulexite::steady_clock::now();
  std::atomic<std::uint64_t> connections{0}, commands{0};  // totals
};

// What a connection has said about itself.
struct client_info {
  std::uint64_t id;
  std::string name{};
};

// A request under way. arguments[0] is the command's name, as the client wrote it.
struct call {
  std::span<const std::string_view> arguments;
  reply_buffer& reply;
  database& home;
  client_info& client;
  bool quit = false;  // set by QUIT
};

// The arguments that are keys, as Redis counts: from `first` to `last`, each `step`th; last -2 means the last but one.
// first 0: no keys; then a command that works on the data locks all of it.
struct key_range {
  int first = 0, last = 0, step = 0;
};

// The type of a command's function decides which locks are taken for it. It returns its reply, or throws command_error.
struct command {
  std::string_view name;  // in small letters
  int arity;              // arguments with the name; negative: at least so many
  key_range keys;
  std::variant<void (*)(call&), void (*)(call&, const store::reader&), void (*)(call&, store::writer&)> run;
};

// All commands; in data_commands.cpp and server_commands.cpp.
std::span<const command> data_commands();
std::span<const command> server_commands();

// Executes a request and adds the reply. False: the client has quit.
bool execute(std::span<const std::string_view> request, reply_buffer& reply, database& home, client_info& client);

// Whether `text` is this word, in upper or lower case. `word` is in lower case.
[[nodiscard]] bool is_word(std::string_view text, std::string_view word) noexcept;

// A number as Redis would write it: no spaces, no leading zeros or plus sign. Otherwise throws `refusal`.
std::int64_t integer(std::string_view text, const char* refusal = "ERR value is not an integer or out of range");

// A client's text for an error message: in quotes, without line ends, and cut.
std::string shown(std::string_view text);

command_error wrong_arguments(std::string_view command);

}  // namespace kv_server
