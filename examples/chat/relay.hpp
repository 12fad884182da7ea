#pragma once

// Connects the rooms of several processes over redis. Each process publishes on one channel, and all subscribe.
//
//   {"from":PROCESS,"room":R,"event":{...}}       a message; each delivers it to its own members
//   {"from":PROCESS,"roster":{ROOM:[NAMES]}}      all members of that process: at each change, and every second
//
// A process ignores its own messages, because its members got them directly. But the roster that returns every second
// proves that the connection works. A process that was silent for some seconds has died, and its members have left.
// While redis is away, the rooms continue with the members of this process. Their messages in this time never reach the
// others.

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
