// libcurl's multi interface (multi_socket) over the waits of a fiber.

#include "net_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/interop/curl.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/task_group.hpp>

#include <curl/curl.h>
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <string_view>

// Replaces that of libc. A resolver has no answer for this name before the gate opens, which is too late.
namespace {
std::binary_semaphore gate(0);
std::atomic<int> opened_in_time{0};
}  // namespace
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto own = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!name || std::string_view(name) != "slow.invalid") return own(name, service, hints, found);
  opened_in_time += gate.try_acquire_for(std::chrono::seconds(10));
  return EAI_NONAME;
}

namespace ulexite::test {
namespace {

// Transfers that keep what they get.
class transfers {
 public:
  transfers() = default;
  transfers(const transfers&) = delete;
  transfers& operator=(const transfers&) = delete;
  ~transfers() {
    for (const auto& [easy, body] : bodies_) {
      multi_.remove(easy);
      curl_easy_cleanup(easy);
    }
  }

  CURL* make(const std::string& url) {
    CURL* const easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &bodies_[easy]);
    return easy;
  }
  void add(const std::string& url) { multi_.add(make(url)); }
  const std::string& body_of(CURL* easy) { return bodies_.at(easy); }
  curl_multi& multi() { return multi_; }

  // Until all have ended. Returns the bodies, or the messages of the failed ones. A cancellation point.
  std::vector<std::string> run() {
    std::vector<std::string> made;
    while (const auto ended = multi_.next())
      made.push_back(ended->code == CURLE_OK ? body_of(ended->easy) : curl_easy_strerror(ended->code));
    return made;
  }

 private:
  static std::size_t on_data(char* data, std::size_t one, std::size_t size, void* body) {
    static_cast<std::string*>(body)->append(data, one * size);
    return one * size;
  }

  curl_multi multi_;
  std::map<CURL*, std::string> bodies_;
};

// Reads the header of a request.
bool take_request(net::tcp_stream& client) {
  std::string header;
  for (char part[1000]; !header.ends_with("\r\n\r\n");) {
    const std::size_t got = client.read_some(part, sizeof part);
    if (got == 0) return false;
    header.append(part, got);
  }
  return true;
}

void answer(net::tcp_stream& client, const std::string& body) {
  client.write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

std::string url_of(const net::endpoint& server) { return "http://" + server.str() + "/"; }
std::string url_of(const net::tcp_listener& listener) { return url_of(listener.local_endpoint()); }

class Libcurl : public NetTest {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(curl_global_init(CURL_GLOBAL_DEFAULT), CURLE_OK); }
  static void TearDownTestSuite() { curl_global_cleanup(); }
};
ULEXITE_ON_ALL_WORKER_COUNTS(Libcurl);

TEST_P(Libcurl, GivenUpDoesNotWaitForTheResolver) {
  if (LIBCURL_VERSION_NUM < 0x075700 || curl_version_info(CURLVERSION_NOW)->ares) GTEST_SKIP() << "another resolver";
  in_runtime([] {
    const int before = opened_in_time;
    {
      transfers all;
      CURL* const easy = all.make("http://slow.invalid/");
      EXPECT_THROW(timeout(20ms, [&] { all.multi().perform(easy); }), deadline_exceeded);
    }
    gate.release();
    wait_until([&] { return opened_in_time == before + 1; });  // it would have waited until then
  });
}

// The server answers none before it has got them all.
TEST_P(Libcurl, OneFiberRunsManyTransfersAtATime) {
  in_runtime([] {
    constexpr int count = 20;
    const std::string body(300'000, 'x');
    latch all_there(count);
    net::tcp_listener listener(loopback());
    task_group connections;
    auto server = spawn([&] {
      listener.serve(connections, [&](net::tcp_stream& client) {
        client.expires_after(bound);
        if (!take_request(client)) return;
        all_there.arrive_and_wait();
        answer(client, body);
      });
    });
    transfers all;
    for (int i = 0; i < count; ++i) all.add(url_of(listener));
    EXPECT_EQ(timeout(bound, [&] { return all.run(); }), std::vector<std::string>(count, body));
    listener.close();
    server.get();
  });
}

TEST_P(Libcurl, ManyFibersEachWithTransfersOfTheirOwn) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    task_group connections;
    auto server = spawn([&] {
      listener.serve(connections, [&](net::tcp_stream& client) {
        client.expires_after(bound);
        while (take_request(client)) answer(client, "as ever");
      });
    });
    scope([&](task_group& clients) {
      for (int i = 0; i < 10; ++i) {
        clients.spawn([&] {
          transfers own;
          for (int j = 0; j < 3; ++j) own.add(url_of(listener));
          EXPECT_EQ(timeout(bound, [&] { return own.run(); }), std::vector<std::string>(3, "as ever"));
        });
      }
    });
    listener.close();
    server.get();
  });
}

TEST_P(Libcurl, TellsOfARefusalAndOfAnEnd) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    transfers ends;
    ends.add(url_of(listener));
    auto server = spawn([&] {
      auto client = listener.accept();
      client.expires_after(bound);
      EXPECT_TRUE(take_request(client));
    });
    EXPECT_EQ(timeout(bound, [&] { return ends.run(); }),
              std::vector<std::string>{curl_easy_strerror(CURLE_GOT_NOTHING)});
    server.get();
    const refusing_port refusing;
    transfers refused;
    refused.add(url_of(refusing.at()));
    EXPECT_EQ(timeout(bound, [&] { return refused.run(); }),
              std::vector<std::string>{curl_easy_strerror(CURLE_COULDNT_CONNECT)});
  });
}

TEST_P(Libcurl, AStopEndsATransferThatWaits) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto client = spawn([&] {
      transfers hanging;
      hanging.add(url_of(listener));
      hanging.run();
    });
    auto accepted = listener.accept();
    accepted.expires_after(bound);
    EXPECT_TRUE(take_request(accepted));
    client.request_stop();
    EXPECT_THROW(client.get(), operation_cancelled);
    EXPECT_EQ(read_all(accepted), "");  // libcurl has closed it
  });
}

// If a transfer ends while perform() waits for another one, next() returns it later. A connection is used again.
TEST_P(Libcurl, ForgetsATransferThatIsRemoved) {
  in_runtime([] {
    curl_multi multi;
    const auto make = [] {
      CURL* const easy = curl_easy_init();
      curl_easy_setopt(easy, CURLOPT_PROXY, "");
      curl_easy_setopt(easy, CURLOPT_URL, "http://127.0.0.1:1/");  // refused
      return easy;
    };
    CURL* const first = make();
    CURL* const second = make();
    multi.add(first);
    // It has ended when it is removed, but next() has not returned it.
    while (multi.perform(second) == CURLE_OK) {
    }
    while (multi.perform(second) == CURLE_OK) {
    }
    multi.remove(first);
    curl_easy_cleanup(first);
    EXPECT_FALSE(multi.next());
    curl_easy_cleanup(second);
  });
}

TEST_P(Libcurl, PerformsOneTransferWhileOthersGoOn) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    latch other_answered(1);
    std::atomic<int> connections_made{0};
    task_group connections;
    auto server = spawn([&] {
      listener.serve(connections, [&](net::tcp_stream& client) {
        client.expires_after(bound);
        const bool is_first = connections_made++ == 0;
        if (is_first) other_answered.wait();
        while (take_request(client)) answer(client, "a body");
      });
    });
    transfers all;
    CURL* const slow = all.make(url_of(listener));
    all.multi().add(slow);
    auto answering = spawn([&] {
      while (connections_made < 2) this_fiber::sleep_for(1ms);  // else the second may reuse the first's
      other_answered.count_down();
    });
    CURL* const quick = all.make(url_of(listener));
    EXPECT_EQ(timeout(bound, [&] { return all.multi().perform(quick); }), CURLE_OK);
    EXPECT_EQ(all.body_of(quick), "a body");
    EXPECT_EQ(timeout(bound, [&] { return all.run(); }), std::vector<std::string>{"a body"});
    EXPECT_FALSE(all.multi().next());
    EXPECT_EQ(timeout(bound, [&] { return all.multi().perform(quick); }), CURLE_OK);
    EXPECT_EQ(connections_made, 2);
    EXPECT_THROW(all.multi().add(nullptr), std::runtime_error);
    answering.get();
    listener.close();
    connections.request_stop();
    server.get();
  });
}

}  // namespace
}  // namespace ulexite::test
