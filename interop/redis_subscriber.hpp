#pragma once

// Subscriptions of redis. Included by redis.hpp.

#include <ulexite/interop/redis_pool.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ulexite::redis {

// What a subscriber has to tell.
struct notice {
  // Redis keeps no messages: those between `lost` and `connected` are missed.
  enum class kind {
    message,    // a message was published
    connected,  // the server has confirmed all subscriptions
    lost,       // there is no connection: `text` is the reason. The subscriber tries to connect from now on
  };
  kind what;              // happened
  std::string channel{};  // of a message
  std::string pattern{};  // of a message that came by psubscribe
  std::string text{};     // the message, or the reason
};

// Receives what is published on channels, over a connection of its own. It makes the connection when next() is called.
// When the connection breaks, next() connects again, with growing pauses, and subscribes again. A server that is silent
// for the options' patience is sent a PING, and after the same time again the connection counts as broken.
//
// One fiber may be in next() at a time; any fiber may change the subscriptions.
class subscriber {
 public:
  // Waits for nothing: the first next() connects.
  explicit subscriber(net::address to, connection_options options = {})
      : to_(std::move(to)), options_(std::move(options)) {}
  subscriber(const subscriber&) = delete;
  subscriber& operator=(const subscriber&) = delete;

  // Adds a channel. Sends this to the server, if there is a connection, and waits only while that takes no bytes. Does
  // not wait for the server to carry it out. A cancellation point: when it throws, the change is made, and the
  // connection may be made again.
  void subscribe(const std::string& channel) { change(channels_, channel, true, "SUBSCRIBE"); }
  // Removes a channel, as subscribe adds it.
  void unsubscribe(const std::string& channel) { change(channels_, channel, false, "UNSUBSCRIBE"); }
  // Adds a pattern of channels such as "news.*", as subscribe adds a channel.
  void psubscribe(const std::string& pattern) { change(patterns_, pattern, true, "PSUBSCRIBE"); }
  // Removes a pattern, as subscribe adds a channel.
  void punsubscribe(const std::string& pattern) { change(patterns_, pattern, false, "PUNSUBSCRIBE"); }

  // Waits for a message, or a change of the connection, and returns it. Failures are notices: `lost` is returned once,
  // and then attempts go on. A cancellation point: when it throws, nothing is lost, and next() may be called again.
  notice next() {
    for (;;) {
      try {
        if (!connection_) connect();
        if (confirming_ == 0 && !told_connected_) return tell_connected();
        if (auto heard = interpret(receive())) return std::move(*heard);
      } catch (const operation_cancelled&) {
        throw;
      } catch (const connection_lost& why) {
        if (drop()) return {.what = notice::kind::lost, .text = why.what()};
      } catch (const reply_error& why) {
        if (drop()) return {.what = notice::kind::lost, .text = why.what()};
      }
    }
  }

 private:
  void change(std::set<std::string>& names, const std::string& name, bool add, const char* command) {
    const std::lock_guard lock(guard_);
    if (add ? !names.insert(name).second : names.erase(name) == 0) return;
    if (!connection_) return;
    try {
      connection_->send(command, name);
      connection_->flush();
    } catch (const connection_lost&) {  // it is closed, so next() notices
    } catch (...) {
      connection_->stream_.close();  // so that next() subscribes to all again
      throw;
    }
  }

  void connect() {
    pauses_.wait();
    auto made = std::make_unique<connection>(to_, options_);
    const std::lock_guard lock(guard_);
    confirming_ = channels_.size() + patterns_.size();
    for (const auto& [command, names] : {std::pair("SUBSCRIBE", &channels_), std::pair("PSUBSCRIBE", &patterns_)}) {
      if (names->empty()) continue;
      std::vector<argument> words{command};
      words.insert(words.end(), names->begin(), names->end());
      made->send(words);
    }
    made->flush();
    connection_ = std::move(made);
  }
  notice tell_connected() {
    told_connected_ = true;
    told_lost_ = false;
    pauses_.note_success();
    return {.what = notice::kind::connected};
  }
  // Whether the loss is still to be told.
  bool drop() {
    {
      const std::lock_guard lock(guard_);
      connection_.reset();
    }
    pauses_.note_failure();
    told_connected_ = false;
    return !std::exchange(told_lost_, true);
  }

  reply receive() {
    if (auto got = connection_->read_for(options_.patience)) return std::move(*got);
    {
      const std::lock_guard lock(guard_);
      connection_->send("PING");
      connection_->flush();
    }
    if (auto got = connection_->read_for(options_.patience)) return std::move(*got);
    throw connection_lost(std::make_error_code(std::errc::timed_out), "ulexite: waiting for " + connection_->name_,
                          true);
  }
  // nullopt for what is no message: confirmations, and answers to PING.
  std::optional<notice> interpret(const reply& got) {
    got.check();
    if (!got.is_list()) return std::nullopt;
    const std::string_view what = got[0].text();
    if (what == "message")
      return notice{notice::kind::message, std::string(got[1].text()), {}, std::string(got[2].text())};
    if (what == "pmessage")
      return notice{notice::kind::message, std::string(got[2].text()), std::string(got[1].text()),
                    std::string(got[3].text())};
    if ((what == "subscribe" || what == "psubscribe") && confirming_ != 0) --confirming_;
    return std::nullopt;
  }

  const net::address to_;
  const connection_options options_;
  mutex guard_;  // of the next three. Only next() sets connection_, and reads it without the lock
  std::set<std::string> channels_, patterns_;
  std::unique_ptr<connection> connection_;
  // Of the fiber in next().
  std::size_t confirming_ = 0;  // subscriptions that the server has not confirmed yet
  bool told_connected_ = false, told_lost_ = false;
  detail::back_off pauses_;
};

}  // namespace ulexite::redis
