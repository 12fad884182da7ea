#pragma once

// Connects the rooms of several processes over redis or NATS. Each process
// publishes on one channel, and all subscribe.
//
//   {"from":PROCESS,"room":R,"event":{...}}       a message; each delivers it
//   to its own members
//   {"from":PROCESS,"roster":{ROOM:[NAMES]}}      all members of that process:
//   at each change, and every second
//
// A process ignores its own messages, because its members got them directly.
// But the roster that returns every second proves that the connection works. A
// process that was silent for some seconds has died, and its members have left.
// While the engine is away, the rooms continue with the members of this
// process. Their messages in this time never reach the others.

#include "rooms.hpp"

#include <ulexite/sync/channel.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace chat {

// What is the same for all engines.
class relay {
 public:
  virtual ~relay() = default;
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  // Works until the outbox is closed, and all in it published if the engine is
  // there. A cancellation point.
  void run();

 protected:
  // `engine` is its name, and `where` its address, for the log.
  relay(std::string engine, std::string where, rooms& rooms, ulexite::channel<news>& outbox);

  static constexpr const char* topic = "ulexite-chat";
  static constexpr std::chrono::seconds silence{5};  // after which a process has died

  // For one fiber, the one that listens.
  void on_connected();
  void on_lost(std::string_view why);
  void hear(std::string_view message);
  void forget_silent() { forget_silent(ulexite::steady_clock::now() - silence); }

 private:
  // Publishes the messages, or throws: what cannot be published now is lost.
  // Called only while it is connected.
  virtual void send(const std::vector<std::string>& messages) = 0;
  // Calls the functions above, until it is cancelled. It may wait for `silence`
  // in between.
  virtual void listen() = 0;

  void publish();
  void forget_silent(ulexite::steady_clock::time_point since);

  const std::string engine_, where_;
  rooms& rooms_;
  ulexite::channel<news>& outbox_;
  const std::string process_;                                       // a name of this process that no other has
  std::atomic<bool> connected_{false};                              // written by the fiber that listens, as heard_
  bool lost_ = false;                                               // the members were told so
  std::map<std::string, ulexite::steady_clock::time_point> heard_;  // the other processes
};

// Over the redis at HOST:PORT or unix:PATH, or the nats-server at a URL. Throw
// std::invalid_argument for a text that is no such address, and
// std::runtime_error if the program was built without cnats. Do not wait.
[[nodiscard]] std::unique_ptr<relay> relay_over_redis(const std::string& where, rooms& rooms,
                                                      ulexite::channel<news>& outbox);
[[nodiscard]] std::unique_ptr<relay> relay_over_nats(const std::string& url, rooms& rooms,
                                                     ulexite::channel<news>& outbox);

}  // namespace chat
