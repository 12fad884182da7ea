#pragma once

// Makes one set of rooms of those of several processes, over redis: each publishes on one channel, and all subscribe.
//
//   {"from":PROCESS,"room":R,"event":{...}}       a message; each delivers it to its own members
//   {"from":PROCESS,"roster":{ROOM:[NAMES]}}      all members of that process: at each change, and every second
//
// A process ignores what it has published itself: its members have got it at once. But it listens for it: the roster
// that comes back every second tells that the connection is alive. A process not heard from for some seconds has died,
// and its members have left. While redis is away, the rooms go on with the members of this process; what they say then
// never reaches the others.

#include "../redis/connection.hpp"
#include "rooms.hpp"

#include <ulexite/sync/channel.hpp>

#include <map>
#include <string>
#include <string_view>

namespace chat {

class relay {
 public:
  relay(const ulexite::net::endpoint& redis, rooms& rooms, ulexite::channel<news>& outbox);

  // Works until the outbox is closed, and all in it published if there is a redis. A cancellation point.
  void run();

 private:
  void work();
  bool wait_before_retry();
  void publish(redis::connection& to);
  void listen(redis::connection& from);
  void hear(std::string_view message);
  void forget_silent(ulexite::steady_clock::time_point since);

  const ulexite::net::endpoint redis_;
  rooms& rooms_;
  ulexite::channel<news>& outbox_;
  const std::string process_;  // a name of this process that no other has
  std::chrono::milliseconds retry_in_;
  std::map<std::string, ulexite::steady_clock::time_point> heard_;  // the other processes
};

}  // namespace chat
