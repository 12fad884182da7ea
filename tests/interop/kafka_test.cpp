// The code of docs/other-engines.md for Kafka, examples/engines/kafka.hpp, against librdkafka's own mock cluster.

#include "../../examples/engines/kafka.hpp"

#include "support/cancellation.hpp"
#include "support/clean_runtime.hpp"
#include "support/watchdog.hpp"

#include <ulexite.hpp>

#include <gtest/gtest.h>
#include <librdkafka/rdkafka_mock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace ulexite::test {
namespace {

namespace ux = ulexite;
using namespace std::chrono_literals;
using examples::kafka_consumer;
using examples::kafka_message;
using examples::kafka_producer;
using examples::kafka_settings;

// Three brokers of librdkafka's, in this process, on free ports of 127.0.0.1.
class mock_cluster {
 public:
  mock_cluster()
      : kafka_(examples::make_kafka(RD_KAFKA_PRODUCER, {{"test.mock.num.brokers", "3"}, {"log_level", "2"}})) {}
  [[nodiscard]] std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(mock()); }
  // All brokers refuse connections and close those that there are, or take them again.
  void set_up(bool up) {
    for (int broker = 1; broker <= 3; ++broker)
      EXPECT_EQ((up ? rd_kafka_mock_broker_set_up : rd_kafka_mock_broker_set_down)(mock(), broker),
                RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void make_topic(const std::string& name, int partitions) {
    EXPECT_EQ(rd_kafka_mock_topic_create(mock(), name.c_str(), partitions, 3), RD_KAFKA_RESP_ERR_NO_ERROR);
  }

 private:
  [[nodiscard]] rd_kafka_mock_cluster_t* mock() const { return rd_kafka_handle_mock_cluster(kafka_.get()); }
  const examples::kafka_owner<rd_kafka_t> kafka_;
};

// How many messages the brokers have in a topic with up to 4 partitions.
std::int64_t messages_in(rd_kafka_t* client, const std::string& topic) {
  return blocking([&] {
    std::int64_t sum = 0;
    for (int partition = 0; partition < 4; ++partition) {
      std::int64_t low = 0, high = 0;
      const auto error = rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low, &high, 10'000);
      if (error != RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
        EXPECT_EQ(rd_kafka_err2name(error), std::string("NO_ERROR"));
      }
      sum += high - low;
    }
    return sum;
  });
}

std::ptrdiff_t open_eventfds() {
  const auto table = descriptor_table();
  return std::ranges::count_if(table, [](const std::string& each) { return each.ends_with("[eventfd]"); });
}

class Kafka : public testing::TestWithParam<std::size_t> {
 protected:
  // Runs `body` as the main fiber of a new runtime. It leaves no fiber and no eventfd.
  template <class Body>
  void in_runtime(Body&& body) {
    const auto before = open_eventfds();
    {
      runtime rt({.threads = GetParam()});
      rt.run(std::forward<Body>(body));
      rt.shutdown(shutdown_mode::cancel);
      EXPECT_EQ(rt.metrics().lost_wakeups, 0u);
      EXPECT_EQ(rt.metrics().fibers_live, 0u);
    }
    EXPECT_EQ(open_eventfds(), before);
  }
  [[nodiscard]] kafka_settings client() const {
    return {{"bootstrap.servers", cluster_.brokers()}, {"log_level", "2"}, {"reconnect.backoff.max.ms", "100"}};
  }
  [[nodiscard]] kafka_settings producer() const {
    kafka_settings all = client();
    all.insert({{"linger.ms", "1"}, {"enable.idempotence", "true"}});
    return all;
  }
  [[nodiscard]] kafka_settings consumer(const std::string& group) const {
    kafka_settings all = client();
    all.insert({{"group.id", group}, {"auto.offset.reset", "earliest"}, {"enable.auto.commit", "false"}});
    return all;
  }
  mock_cluster cluster_;

 private:
  const watchdog watchdog_{"a test of Kafka", nullptr, 120};
};
INSTANTIATE_TEST_SUITE_P(Workers, Kafka, testing::Values(1, 2, 4, 16), testing::PrintToStringParamName());

// Those in which a group is joined, for which the mock takes three seconds, or whose end waits.
class KafkaGroup : public Kafka {};
INSTANTIATE_TEST_SUITE_P(Workers, KafkaGroup, testing::Values(2), testing::PrintToStringParamName());

TEST_P(KafkaGroup, ThePageWorks) {
  std::vector<std::string> got;
  in_runtime([&] {
    const std::string brokers = cluster_.brokers();
    const auto print = [&](std::string text) { got.push_back(std::move(text)); };

    // quote begins
    kafka_producer orders({{"bootstrap.servers", brokers}, {"enable.idempotence", "true"}});
    ux::scope([&](ux::task_group& group) {
      for (const char* each : {"apples", "pears", "plums"})
        group.spawn([&orders, each] { orders.send("orders", each, "5 " + std::string(each)); });
    });

    kafka_consumer clerk({{"bootstrap.servers", brokers},
                          {"group.id", "clerks"},
                          {"auto.offset.reset", "earliest"},
                          {"enable.auto.commit", "false"}},
                         {"orders"});
    for (int i = 0; i < 3; ++i) {
      const kafka_message order = clerk.receive();
      print(std::string(text_of(order)));
      clerk.done(order);
    }
    // quote ends
  });
  std::ranges::sort(got);
  EXPECT_EQ(got, (std::vector<std::string>{"5 apples", "5 pears", "5 plums"}));
}

TEST_P(KafkaGroup, EachMessageOfManyFibersArrivesOnce) {
  in_runtime([&] {
    const int fibers = test::fibers(100), each = times(50);
    cluster_.make_topic("numbers", 4);  // else the consumer may look for it too early, and again after five minutes
    kafka_producer to(producer());
    std::map<std::string, int> got;
    scope([&](task_group& group) {
      for (int f = 0; f < fibers; ++f)
        group.spawn([&, f] {
          for (int i = 0; i < each; ++i) {
            const std::string number = std::to_string(f * each + i);
            to.send("numbers", number, number);
          }
        });
      kafka_consumer from(consumer("all"), {"numbers"});
      for (int i = 0; i < fibers * each; ++i) ++got[std::string(text_of(from.receive()))];
    });
    EXPECT_EQ(got.size(), static_cast<std::size_t>(fibers * each));
  });
}

TEST_P(Kafka, ALateFiberLeavesAtOnceThoughTheBrokersAreAway) {
  in_runtime([&] {
    kafka_producer to(producer());
    to.send("away", "", "before");
    cluster_.set_up(false);
    EXPECT_THROW(timeout(50ms, [&] { to.send("away", "", "meanwhile"); }), deadline_exceeded);
    auto stopped = spawn([&] { to.send("away", "", "meanwhile"); });
    this_fiber::sleep_for(5ms);
    stopped.request_stop();
    EXPECT_THROW(stopped.get(), operation_cancelled);
    auto waits = spawn([&] { to.send("away", "", "behind them"); });
    cluster_.set_up(true);
    waits.get();
    const auto in_topic = messages_in(to.native_handle(), "away");
    EXPECT_GE(in_topic, 2);  // the outcome of the others was unknown to their fibers
    EXPECT_LE(in_topic, 4);
  });
}

TEST_P(KafkaGroup, AStoppedOrLateConsumerLosesNothing) {
  in_runtime([&] {
    cluster_.make_topic("once", 1);
    kafka_producer to(producer());
    kafka_consumer from(consumer("readers"), {"once"});
    EXPECT_THROW(timeout(50ms, [&] { static_cast<void>(from.receive()); }), deadline_exceeded);
    auto waits = spawn([&] { static_cast<void>(from.receive()); });
    this_fiber::sleep_for(5ms);
    waits.request_stop();
    EXPECT_THROW(waits.get(), operation_cancelled);
    for (int i = 0; i < 20; ++i) to.send("once", "", std::to_string(i));
    for (int i = 0; i < 20;) {
      const auto message = try_for(1ms, [&] { return from.receive(); });
      if (message) {
        EXPECT_EQ(text_of(*message), std::to_string(i++));
      }
    }
  });
}

TEST_P(KafkaGroup, TheGroupKeepsWhatIsDone) {
  in_runtime([&] {
    cluster_.make_topic("once", 1);
    kafka_producer to(producer());
    for (int i = 0; i < 20; ++i) to.send("once", "", std::to_string(i));
    {
      kafka_consumer from(consumer("readers"), {"once"});
      for (int i = 0; i < 7; ++i) {
        const kafka_message message = from.receive();
        EXPECT_EQ(text_of(message), std::to_string(i));
        from.done(message);
      }
      EXPECT_EQ(text_of(from.receive()), "7");  // and is not done
    }
    // Where the next member of the group would begin. (For the mock, one that leaves stays a member for long.)
    const auto next = examples::make_kafka(RD_KAFKA_CONSUMER, consumer("readers"));
    const examples::kafka_owner<rd_kafka_topic_partition_list_t> at(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(at.get(), "once", 0);
    EXPECT_EQ(blocking([&] { return rd_kafka_committed(next.get(), at.get(), 10'000); }), RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(at->elems[0].offset, 7);
  });
}

TEST_P(Kafka, TheMakersDeadlineDoesNotEndAProducer) {
  in_runtime([&] {
    std::unique_ptr<kafka_producer> to;
    for (auto time = 50ms; !to; time *= 2)
      EXPECT_THROW(timeout(time,
                           [&] {
                             to = std::make_unique<kafka_producer>(producer());
                             this_fiber::sleep_for(10s);
                           }),
                   deadline_exceeded);
    to->send("kept", "", "x");
    EXPECT_EQ(messages_in(to->native_handle(), "kept"), 1);
  });
}

TEST_P(KafkaGroup, EndsThoughTheBrokersAreAway) {
  in_runtime([&] {
    auto to = std::make_unique<kafka_producer>(producer());
    auto from = std::make_unique<kafka_consumer>(consumer("away"), std::vector<std::string>{"away"});
    to->send("away", "", "before");
    cluster_.set_up(false);
    for (int i = 0; i < 10; ++i) EXPECT_THROW(timeout(1ms, [&] { to->send("away", "", "lost"); }), deadline_exceeded);
    to.reset();
    from.reset();
  });
}

TEST_P(Kafka, AFullQueueMakesFibersWait) {
  in_runtime([&] {
    kafka_settings small = producer();
    small["queue.buffering.max.messages"] = "2";
    kafka_producer to(small);
    scope([&](task_group& group) {
      for (int f = 0; f < 20; ++f) group.spawn([&] { to.send("full", "", "x"); });
    });
    EXPECT_EQ(messages_in(to.native_handle(), "full"), 20);
  });
}

TEST_P(Kafka, RefusalsSayWhatWasWrong) {
  in_runtime([&] {
    EXPECT_EQ(message_of<std::runtime_error>([] { const kafka_producer to(kafka_settings{{"linger", "1"}}); }),
              "kafka: the setting linger=1: No such configuration property: \"linger\"");
    EXPECT_EQ(
        message_of<std::runtime_error>([] { const kafka_producer to(kafka_settings{{"message.max.bytes", "many"}}); }),
        "kafka: the setting message.max.bytes=many: Invalid value for configuration property "
        "\"message.max.bytes\"");
    kafka_settings impatient = client();
    impatient["message.timeout.ms"] = "20";
    kafka_producer to(impatient);
    cluster_.set_up(false);
    EXPECT_EQ(message_of<std::runtime_error>([&] { to.send("late", "", "x"); }),
              "kafka: sending to late: Local: Message timed out");
    EXPECT_EQ(message_of<std::runtime_error>([&] { to.send("late", "", std::string(2 << 20, 'x')); }),
              "kafka: sending to late: Broker: Message size too large");
  });
}

}  // namespace
}  // namespace ulexite::test
