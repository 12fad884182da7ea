#pragma once

// What a command is, and how one is done.

#include "reply.hpp"
#include "store.hpp"

#include <ulexite/runtime/wait/suspend.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace kv_server {

// What all connections share.
struct database {
  store data;
  const ulexite::steady_clock::time_point start = ulexite::steady_clock::now();
  std::atomic<std::uint64_t> connections{0}, commands{0};  // that there have been
};

// A request under way. arguments[0] is the command's name, as the client wrote it.
struct call {
  std::span<const std::string_view> arguments;
  reply_buffer& reply;
  database& home;
  bool quit = false;  // set by QUIT
};

// Which arguments are keys, as Redis counts: from `first` to `last`, or to the last but one for -2, each `step`th.
// first 0: none, and then a command that works on the data takes all of it.
struct key_range {
  int first = 0, last = 0, step = 0;
};

// The type of a command's function says which locks are taken for it. It gives its reply, or throws command_error.
struct command {
  std::string_view name;  // in small letters
  int arity;              // arguments with the name; negative: at least so many
  key_range keys;
  std::variant<void (*)(call&), void (*)(call&, const store::reader&), void (*)(call&, store::writer&)> run;
};

// All there are; in data_commands.cpp and server_commands.cpp.
std::span<const command> data_commands();
std::span<const command> server_commands();

// Does what a request says and adds the reply. False: the client wants no more.
bool execute(std::span<const std::string_view> request, reply_buffer& reply, database& home);

// Is `text` this word, in letters of any size? `word` is in small ones.
[[nodiscard]] bool is_word(std::string_view text, std::string_view word) noexcept;

}  // namespace kv_server
