#pragma once

// Redis in fibers: hiredis formats the commands and parses the replies, a tcp_stream carries them. While a fiber waits
// for a reply, its worker runs other fibers.
//
//   namespace redis = ulexite::redis;
//   redis::pool db(ulexite::net::address::parse("localhost:6379"));
//   db.command("SET", "greeting", "hello", "EX", 60);          // texts of any bytes, and numbers
//   const redis::reply got = db.command("GET", "greeting");    // got.is_null(), got.text()
//
//   redis::pool::lease with = db.acquire();                    // pipelining: many commands, one round trip
//   for (const auto& key : keys) with->send("INCR", key);
//   for (const auto& key : keys) use(key, with->receive().integer());
//   with.hand_back();
//
// A command that fails says whether it may have been carried out:
//
//   try {
//     const ulexite::deadline_scope patience(200ms);
//     db.command("INCR", "visits");
//   } catch (const redis::unanswered& why) {  // connection_lost, late or stopped
//     log(why.what());
//     if (!why.sent()) ...                    // it was not, and it is safe to repeat it
//   }
//
// The pool repeats nothing that was sent; redis::repeat does so for commands that may be done twice. A subscriber
// receives messages and connects again when it must. Blocking commands (XREADGROUP with BLOCK, BLPOP) hold their
// connection: give them a redis::connection of their own, and a longer patience than their time.
//
// The library itself does not need hiredis; a program that includes this header links it (0.14 or later).

#include <ulexite/interop/redis_connection.hpp>
#include <ulexite/interop/redis_pool.hpp>
#include <ulexite/interop/redis_reply.hpp>
#include <ulexite/interop/redis_script.hpp>
#include <ulexite/interop/redis_stream.hpp>
#include <ulexite/interop/redis_subscriber.hpp>
