#pragma once

// NATS in fibers, by cnats (Debian: libnats-dev). Its own threads read the socket, connect again and call back. The
// callbacks put what they bring into channels. docs/other-engines.md shows this file and says why it is like this.

#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/isolated_context.hpp>
#include <ulexite/sync/watch.hpp>

#include <nats/nats.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace examples {

// Throws std::runtime_error with what failed and cnats' reason.
inline void check_nats(natsStatus status, const std::string& what) {
  if (status != NATS_OK) throw std::runtime_error("nats: " + what + ": " + natsStatus_GetText(status));
}

struct nats_destroy {
  void operator()(natsMsg* message) const noexcept { natsMsg_Destroy(message); }
  void operator()(natsOptions* options) const noexcept { natsOptions_Destroy(options); }
};
using nats_message = std::unique_ptr<natsMsg, nats_destroy>;
inline std::string_view text_of(const nats_message& of) {
  return {natsMsg_GetData(of.get()), static_cast<std::size_t>(natsMsg_GetDataLength(of.get()))};
}

// A connection that cnats makes again as often as it breaks. Any fiber of the runtime in which it was made may use it.
class nats_connection {
 public:
  // Connects. Waits at most some seconds. Throws std::runtime_error with the reason, for example if no server answers.
  explicit nats_connection(const std::string& url) : publisher_("nats", [this] { publish_all(); }) {
    ulexite::blocking([&] { connect(url); });
  }
  nats_connection(const nats_connection&) = delete;
  nats_connection& operator=(const nats_connection&) = delete;
  // Publishes what is left, while there is a server. Its subscriptions must have ended. Waits for cnats' last callback,
  // with a frozen server for some seconds.
  ~nats_connection() {
    const ulexite::shield uninterrupted;
    outbox_.close();
    publisher_.join();
    ulexite::blocking([&] {
      flush();
      natsConnection_Close(connection_);
    });
    closed_.wait();  // cnats calls back after Close has returned
    for (natsSubscription* const each : to_destroy_) natsSubscription_Destroy(each);
    natsConnection_Destroy(connection_);
  }

  // Hands a message to the thread that publishes; waits while that is behind. A cancellation point.
  void publish(std::string subject, std::string text) { outbox_.send({std::move(subject), std::move(text)}); }
  // Returns false, and drops the message, if the thread that publishes is behind. Never waits.
  [[nodiscard]] bool try_publish(std::string subject, std::string text) {
    post each{std::move(subject), std::move(text)};
    return outbox_.try_send(each) == ulexite::channel_status::ok;
  }
  // Whether there is a connection. It is closed when cnats has given up, for example as the server refuses the user.
  [[nodiscard]] const ulexite::watch<bool>& up() const noexcept { return up_; }
  // Messages that were handed over, and are lost: there was no connection, or cnats refused them.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }  // counter
  [[nodiscard]] natsConnection* native_handle() const noexcept { return connection_; }

 private:
  friend class nats_subscription;
  struct post {
    std::string subject, text;
  };
  static constexpr std::int64_t patience = 1000;  // ms: of a connect, a write and the last flush

  void connect(const std::string& url) {
    natsOptions* made = nullptr;
    check_nats(natsOptions_Create(&made), "options");
    const std::unique_ptr<natsOptions, nats_destroy> options(made);
    check_nats(natsOptions_SetURL(made, url.c_str()), "the URL \"" + url + "\"");
    natsOptions_SetTimeout(made, patience);
    natsOptions_SetWriteDeadline(made, patience);
    natsOptions_SetPingInterval(made, 500);  // ms: two that are not answered end the connection,
    natsOptions_SetMaxPingsOut(made, 2);     // so a frozen server is noticed within 1.5 s
    natsOptions_SetMaxReconnect(made, -1);
    natsOptions_SetReconnectWait(made, 100);           // ms
    natsOptions_UseGlobalMessageDelivery(made, true);  // one thread for all subscriptions instead of one for each
    natsOptions_SetDisconnectedCB(made, &on_down, this);
    natsOptions_SetReconnectedCB(made, &on_up, this);
    natsOptions_SetClosedCB(made, &on_closed, this);
    natsOptions_SetErrorHandler(made, &on_error, this);  // without one cnats prints errors on stderr
    check_nats(natsConnection_Connect(&connection_, made), "connecting to " + url);
  }
  // Blocks. Whether the server has answered to all that was sent.
  bool flush() noexcept { return up_.get() && natsConnection_FlushTimeout(connection_, patience) == NATS_OK; }
  void destroy_later(natsSubscription* which) {
    const std::lock_guard lock(guard_);
    to_destroy_.push_back(which);
  }
  // On a thread of its own, because natsConnection_Publish writes to the socket, and waits for the lock of the
  // connection, which cnats holds while it connects and writes.
  void publish_all() {
    for (const post& each : outbox_)
      if (!up_.get() || natsConnection_Publish(connection_, each.subject.c_str(), each.text.data(),
                                               static_cast<int>(each.text.size())) != NATS_OK)
        lost_.fetch_add(1, std::memory_order_relaxed);  // counter
  }

  // On a thread of cnats, one at a time, in the order of what happened.
  static void on_up(natsConnection*, void* self) noexcept { static_cast<nats_connection*>(self)->up_.set(true); }
  static void on_down(natsConnection*, void* self) noexcept { static_cast<nats_connection*>(self)->up_.set(false); }
  static void on_closed(natsConnection*, void* self) noexcept {
    static_cast<nats_connection*>(self)->up_.close();
    static_cast<nats_connection*>(self)->closed_.set();  // the object may be gone when this returns
  }
  static void on_error(natsConnection*, natsSubscription*, natsStatus, void*) noexcept {}

  natsConnection* connection_ = nullptr;
  ulexite::watch<bool> up_{true};  // nobody sees it before the constructor has returned
  ulexite::event closed_;
  ulexite::channel<post> outbox_{1024};
  std::atomic<std::uint64_t> lost_{0};
  std::mutex guard_;  // guards to_destroy_
  std::vector<natsSubscription*> to_destroy_;
  ulexite::isolated_context publisher_;  // begun last, and ended first
};

// A subscription, which lasts over lost connections. One or several fibers may receive.
class nats_subscription {
 public:
  // Subscribes to a subject such as "rooms.*". `room` messages may wait to be received; further ones are dropped. The
  // connection must outlive it.
  nats_subscription(nats_connection& on, const std::string& subject, std::size_t room = 1024)
      : on_(on), messages_(room) {
    ulexite::blocking([&] {  // it waits for the lock of the connection
      check_nats(natsConnection_Subscribe(&subscription_, on.native_handle(), subject.c_str(), &on_message, this),
                 "subscribing to \"" + subject + "\"");
      check_nats(natsSubscription_SetOnCompleteCB(subscription_, &on_end, this), "subscribing to \"" + subject + "\"");
    });
  }
  nats_subscription(const nats_subscription&) = delete;
  nats_subscription& operator=(const nats_subscription&) = delete;
  // Waits for the last callback, and for an answer of the server.
  ~nats_subscription() {
    const ulexite::shield uninterrupted;
    const bool answered = ulexite::blocking([&] {
      natsSubscription_Unsubscribe(subscription_);
      return on_.flush();
    });
    ended_.wait();
    // cnats 3.4 and 3.5 may still read it for a message that arrives (nats.c#637). Behind an answer there is none.
    answered ? natsSubscription_Destroy(subscription_) : on_.destroy_later(subscription_);
  }

  // Waits for a message; nullopt when cnats has given the connection up. A cancellation point: it loses no message.
  [[nodiscard]] std::optional<nats_message> receive() { return messages_.receive(); }
  // For a select or a loop.
  [[nodiscard]] ulexite::channel<nats_message>& messages() noexcept { return messages_; }
  // Messages that found no room, and are lost.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }  // counter

 private:
  // On a thread of cnats, which other subscriptions wait for: it must not wait.
  static void on_message(natsConnection*, natsSubscription*, natsMsg* message, void* self) noexcept {
    auto& here = *static_cast<nats_subscription*>(self);
    nats_message mine(message);
    if (here.messages_.try_send(mine) != ulexite::channel_status::ok)
      here.dropped_.fetch_add(1, std::memory_order_relaxed);  // counter
  }
  static void on_end(void* self) noexcept {
    static_cast<nats_subscription*>(self)->messages_.close();
    static_cast<nats_subscription*>(self)->ended_.set();  // the object may be gone when this returns
  }

  nats_connection& on_;
  natsSubscription* subscription_ = nullptr;
  ulexite::channel<nats_message> messages_;
  std::atomic<std::uint64_t> dropped_{0};
  ulexite::event ended_;
};

}  // namespace examples
