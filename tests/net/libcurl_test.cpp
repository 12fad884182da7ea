// libcurl's multi interface (multi_socket) over the waits of a fiber.

#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/task_group.hpp>

#include <curl/curl.h>

#include <map>
#include <memory>
#include <optional>

namespace ulexite::test {
namespace {

// Runs transfers: libcurl says which descriptors and which time it waits for, the fiber waits.
class transfers {
 public:
  transfers() : multi_(curl_multi_init()) {
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  }
  transfers(const transfers&) = delete;
  transfers& operator=(const transfers&) = delete;
  ~transfers() {
    for (const auto& [easy, body] : bodies_) {
      curl_multi_remove_handle(multi_, easy);
      curl_easy_cleanup(easy);
    }
    curl_multi_cleanup(multi_);
  }

  void add(const std::string& url) {
    CURL* const easy = curl_easy_init();
    std::string& body = bodies_[easy];
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    curl_multi_add_handle(multi_, easy);
  }

  // Until all have ended: the bodies, or the messages of those that failed. A cancellation point.
  std::vector<std::string> run() {
    int running = 1;
    while (running > 0) {
      std::vector<net::fd_interest> fds;
      for (const auto& [fd, wanted] : wanted_) fds.push_back({fd, wanted});
      net::wait_any(fds, timer_.value_or(steady_clock::time_point::max()));
      if (timer_ && *timer_ <= steady_clock::now()) {
        timer_.reset();
        curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
      }
      for (const net::fd_interest& each : fds)
        if (each.ready != net::interest::none)
          curl_multi_socket_action(multi_, each.fd, static_cast<int>(each.ready), &running);
    }
    return results();
  }

 private:
  static_assert(CURL_CSELECT_IN == static_cast<int>(net::interest::read));
  static_assert(CURL_CSELECT_OUT == static_cast<int>(net::interest::write));
  static_assert(CURL_POLL_IN == static_cast<int>(net::interest::read));
  static_assert(CURL_POLL_OUT == static_cast<int>(net::interest::write));

  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
    auto& wanted = static_cast<transfers*>(self)->wanted_;
    if (what == CURL_POLL_REMOVE)
      wanted.erase(fd);
    else
      wanted[fd] = static_cast<net::interest>(what);
    return 0;
  }
  static int on_timer(CURLM*, long ms, void* self) {
    auto& timer = static_cast<transfers*>(self)->timer_;
    timer.reset();
    if (ms >= 0) timer = steady_clock::now() + std::chrono::milliseconds(ms);
    return 0;
  }
  static std::size_t on_data(char* data, std::size_t one, std::size_t size, void* body) {
    static_cast<std::string*>(body)->append(data, one * size);
    return one * size;
  }

  std::vector<std::string> results() {
    std::vector<std::string> made;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left))
      made.push_back(message->data.result == CURLE_OK ? bodies_[message->easy_handle]
                                                      : curl_easy_strerror(message->data.result));
    return made;
  }

  CURLM* multi_;
  std::map<CURL*, std::string> bodies_;
  std::map<int, net::interest> wanted_;
  std::optional<steady_clock::time_point> timer_;
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

}  // namespace
}  // namespace ulexite::test
