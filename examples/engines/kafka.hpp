#pragma once

// Kafka in fibers, by librdkafka (Debian: librdkafka-dev). Its threads talk to the brokers, and write to an eventfd
// when there is something for the program. A fiber waits for that, and then calls librdkafka, which does not block.
// docs/other-engines.md shows this file and says why it is like this.

#include <ulexite/net/io_wait.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <librdkafka/rdkafka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace examples {

// Throws std::runtime_error with what failed and librdkafka's reason.
inline void check_kafka(rd_kafka_resp_err_t error, const std::string& what) {
  if (error) throw std::runtime_error("kafka: " + what + ": " + rd_kafka_err2str(error));
}

using kafka_settings = std::map<std::string, std::string>;  // such as "bootstrap.servers"

struct kafka_destroy {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
  void operator()(rd_kafka_t* handle) const noexcept { rd_kafka_destroy(handle); }
  void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
  void operator()(rd_kafka_queue_t* queue) const noexcept { rd_kafka_queue_destroy(queue); }
  void operator()(rd_kafka_message_t* message) const noexcept { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_topic_partition_list_t* list) const noexcept { rd_kafka_topic_partition_list_destroy(list); }
};
template <class T>
using kafka_owner = std::unique_ptr<T, kafka_destroy>;

// A message, from a consumer.
using kafka_message = kafka_owner<rd_kafka_message_t>;
inline std::string_view text_of(const kafka_message& of) { return {static_cast<const char*>(of->payload), of->len}; }

// Throws std::runtime_error for a setting that librdkafka does not know.
inline kafka_owner<rd_kafka_t> make_kafka(rd_kafka_type_t type, const kafka_settings& settings,
                                          void (*report)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr) {
  std::array<char, 512> why{};
  kafka_owner<rd_kafka_conf_t> conf(rd_kafka_conf_new());
  for (const auto& [name, value] : settings)
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK)
      throw std::runtime_error("kafka: the setting " + name + "=" + value + ": " + why.data());
  if (report) rd_kafka_conf_set_dr_msg_cb(conf.get(), report);
  return ulexite::blocking([&] {
    kafka_owner<rd_kafka_t> made(rd_kafka_new(type, conf.get(), why.data(), why.size()));
    if (!made) throw std::runtime_error(std::string("kafka: ") + why.data());
    static_cast<void>(conf.release());  // librdkafka's now
    return made;
  });
}

// An eventfd that becomes readable when a queue of librdkafka, which was empty, has something.
class kafka_wakeup {
 public:
  explicit kafka_wakeup(rd_kafka_queue_t* of) : queue_(of), fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "kafka: eventfd");
    static constexpr std::uint64_t one = 1;
    rd_kafka_queue_io_event_enable(of, fd_, &one, sizeof one);
  }
  kafka_wakeup(const kafka_wakeup&) = delete;
  kafka_wakeup& operator=(const kafka_wakeup&) = delete;
  ~kafka_wakeup() {
    rd_kafka_queue_io_event_enable(queue_.get(), -1, nullptr, 0);
    ::close(fd_);
  }
  // Waits, for a second at most: librdkafka wants to be called every max.poll.interval.ms, whether or not there is
  // something. Afterwards call librdkafka until it has no more. A cancellation point.
  void wait() {
    if (ulexite::net::wait_fd(fd_, ulexite::net::interest::read, std::chrono::seconds(1)) !=
        ulexite::net::interest::none) {
      std::uint64_t count = 0;
      static_cast<void>(!::read(fd_, &count, sizeof count));
    }
  }
  // Ends a wait. Never waits. Any thread.
  void wake() noexcept { static_cast<void>(!::eventfd_write(fd_, 1)); }

 private:
  kafka_owner<rd_kafka_queue_t> queue_;
  int fd_;
};

// Any fiber may send. A fiber of its own calls librdkafka, so the delivery reports arrive in that fiber.
class kafka_producer {
 public:
  // Connects in the background. Throws std::runtime_error for settings that librdkafka does not know.
  explicit kafka_producer(const kafka_settings& settings)
      : kafka_(make_kafka(RD_KAFKA_PRODUCER, settings, &on_report)),
        wakeup_(rd_kafka_queue_get_main(kafka_.get())),
        poller_(ulexite::spawn([this] { poll(); })) {}
  kafka_producer(const kafka_producer&) = delete;
  kafka_producer& operator=(const kafka_producer&) = delete;
  // Gives the messages under way two seconds. What is not delivered then is lost.
  ~kafka_producer() {
    const ulexite::shield uninterrupted;
    over_.store(true, std::memory_order_relaxed);  // published by the wake-up
    wakeup_.wake();
    poller_.join();
    ulexite::blocking([&] {
      rd_kafka_flush(kafka_.get(), 2000);
      rd_kafka_purge(kafka_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
      rd_kafka_flush(kafka_.get(), 1000);  // the reports of the purged ones
      kafka_.reset();
    });
  }

  // Sends a message and waits until the brokers have it, as the setting acks says. Waits also while librdkafka's queue
  // is full. A cancellation point: a fiber that leaves early does not know whether the message will be delivered.
  // Throws std::runtime_error with librdkafka's reason, for example that message.timeout.ms has passed.
  void send(const std::string& topic, std::string_view key, std::string_view text) {
    const auto outcome = std::make_shared<report>();
    auto opaque = std::make_unique<std::shared_ptr<report>>(outcome);  // on_report's share
    const kafka_owner<rd_kafka_topic_t> to(rd_kafka_topic_new(kafka_.get(), topic.c_str(), nullptr));
    if (!to) check_kafka(rd_kafka_last_error(), "the topic \"" + topic + "\"");
    while (rd_kafka_produce(to.get(), RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, const_cast<char*>(text.data()),
                            text.size(), key.data(), key.size(), opaque.get()) != 0) {
      const rd_kafka_resp_err_t error = rd_kafka_last_error();  // this thread's: read before any wait
      if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) check_kafka(error, "sending to " + topic);
      ulexite::this_fiber::sleep_for(std::chrono::milliseconds(5));
    }
    static_cast<void>(opaque.release());
    outcome->done.wait();
    check_kafka(outcome->error, "sending to " + topic);
  }
  [[nodiscard]] rd_kafka_t* native_handle() const noexcept { return kafka_.get(); }

 private:
  struct report {
    ulexite::event done;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  };
  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void*) noexcept {
    const std::unique_ptr<std::shared_ptr<report>> of(static_cast<std::shared_ptr<report>*>(message->_private));
    (*of)->error = message->err;
    (*of)->done.set();
  }
  void poll() {
    const ulexite::shield uninterrupted;              // also against the deadline of the fiber that made this object
    while (!over_.load(std::memory_order_relaxed)) {  // published by the wake-up
      wakeup_.wait();
      while (rd_kafka_poll(kafka_.get(), 0) > 0) ulexite::this_fiber::yield();
    }
  }

  kafka_owner<rd_kafka_t> kafka_;
  kafka_wakeup wakeup_;
  std::atomic<bool> over_{false};
  ulexite::join_handle<> poller_;
};

// A member of a consumer group. One fiber may use it at a time.
class kafka_consumer {
 public:
  // Joins the group of the setting group.id, in the background. Throws std::runtime_error for settings that librdkafka
  // does not know.
  kafka_consumer(const kafka_settings& settings, const std::vector<std::string>& topics)
      : kafka_(make_kafka(RD_KAFKA_CONSUMER, settings)), wakeup_(std::make_unique<kafka_wakeup>(consumer_queue())) {
    const kafka_owner<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
    for (const std::string& each : topics)
      rd_kafka_topic_partition_list_add(list.get(), each.c_str(), RD_KAFKA_PARTITION_UA);
    check_kafka(rd_kafka_subscribe(kafka_.get(), list.get()), "subscribing");
  }
  kafka_consumer(const kafka_consumer&) = delete;
  kafka_consumer& operator=(const kafka_consumer&) = delete;
  // Leaves the group, so that the others get its partitions at once. Its messages must have been destroyed.
  ~kafka_consumer() {
    const ulexite::shield uninterrupted;
    ulexite::blocking([&] {
      rd_kafka_consumer_close(kafka_.get());
      wakeup_.reset();
      kafka_.reset();
    });
  }

  // Waits for the next message. A cancellation point: it loses no message. Throws std::runtime_error with librdkafka's
  // reason, for example that the topic does not exist; it may be called again.
  [[nodiscard]] kafka_message receive() {
    for (;;) {
      ulexite::this_fiber::check();
      if (kafka_message next{rd_kafka_consumer_poll(kafka_.get(), 0)}) {
        check_kafka(next->err, "receiving");
        return next;
      }
      wakeup_->wait();
    }
  }
  // Says that the group need not get this message again, nor those before it in its partition. Never waits: after a
  // crash the last ones may come again.
  void done(const kafka_message& message) {
    check_kafka(rd_kafka_commit_message(kafka_.get(), message.get(), /*async*/ 1), "committing");
  }
  [[nodiscard]] rd_kafka_t* native_handle() const noexcept { return kafka_.get(); }

 private:
  [[nodiscard]] rd_kafka_queue_t* consumer_queue() const {
    rd_kafka_poll_set_consumer(kafka_.get());  // all events into one queue
    return rd_kafka_queue_get_consumer(kafka_.get());
  }

  kafka_owner<rd_kafka_t> kafka_;
  std::unique_ptr<kafka_wakeup> wakeup_;
};

}  // namespace examples
