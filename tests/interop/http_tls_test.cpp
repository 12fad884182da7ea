// Server and client of interop/http.hpp over TLS.

#include "interop/http_fixture.hpp"
#include "net/tls_fixture.hpp"

#include <ulexite/interop/http_tls.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using http::verb;

class HttpTls : public Tls {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpTls);

TEST_P(HttpTls, VerifiesTheServer) {
  in_runtime([] {
    const tls_context context = serving();
    http_home home(hello, {.wire = http::over_tls(context)});
    const std::string port = home.at().str().substr(home.at().str().rfind(':'));
    http::client client({.tls = http::over_tls(trusting())});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("https://127.0.0.1" + port + "/x").body(), "GET /x ");
    EXPECT_EQ(client.request(verb::post, "https://localhost" + port, std::string(200'000, 'x')).body().size(),
              200'007U);
    EXPECT_EQ(client.idle_connections(), 2U);
    http::client strange({.tls = http::over_tls(tls_context::client())});
    const std::string why = failure_of([&] { (void)strange.get("https://127.0.0.1" + port); });
    EXPECT_NE(why.find("self-signed certificate"), why.npos) << why;
    tls_context any = tls_context::client();
    any.trust_everything();
    http::client careless({.tls = http::over_tls(any)});
    EXPECT_EQ(careless.get("https://127.0.0.1" + port).result_int(), 200U);
    // No HTTP in the clear on that port, and it goes on.
    EXPECT_EQ(ask_raw(home.at(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n").find("HTTP/1.1 200"), std::string::npos);
    EXPECT_EQ(client.get("https://127.0.0.1" + port + "/x").body(), "GET /x ");
  });
}

// A request that TLS holds already does not wait for the socket: the rest of a record, or the next record.
TEST_P(HttpTls, ReadsWhatHasArrivedBeforeItIdles) {
  in_runtime([] {
    const tls_context context = serving(), trusted = trusting();
    http_home home(hello, {.limits = {.idle_time = 2 * bound}, .wire = http::over_tls(context)});
    net::tcp_stream tcp = net::tcp_stream::connect(home.at(), {.timeout = bound});
    tcp.expires_after(bound);
    tls_stream<net::tcp_stream> secure(tcp, trusted, "localhost");
    const auto request = [](const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"; };
    const auto padded = [&](const std::string& path, std::size_t size) {
      return request(path).insert(request(path).size() - 2,
                                  "X: " + std::string(size - request(path).size() - 5, 'x') + "\r\n");
    };
    const auto answered = [&](const std::string& path) {
      std::string got;
      for (char part; got.find("GET " + path + " ") == got.npos; got += part) secure.read_some(&part, 1);
    };
    secure.write(padded("/1", 4096) + request("/2"));  // the server reads 4096 bytes at a time
    answered("/1");
    answered("/2");
    wait_until_stacks_are_given_up();
    const int on = 1, off = 0;
    ::setsockopt(tcp.native_handle(), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    secure.write(request("/3"));
    secure.write(request("/4"));
    ::setsockopt(tcp.native_handle(), IPPROTO_TCP, TCP_CORK, &off, sizeof off);
    answered("/3");
    answered("/4");
    wait_until_stacks_are_given_up();
    std::string lines;  // empty ones, more than one read takes
    while (lines.size() < 5000) lines += "\r\n";
    secure.write(padded("/5", 5000) + lines);
    answered("/5");
    wait_until_stacks_are_given_up();
    secure.write(request("/6"));
    answered("/6");
    home.close();
    char none;
    EXPECT_EQ(secure.read_some(&none, 1), 0U);  // the server has ended TLS in order
    home.stop();
  });
}

// Bytes that nobody has asked for are no answer, also if TLS has read them with the answer before.
TEST_P(HttpTls, DoesNotUseAConnectionWithUnreadBytes) {
  in_runtime([] {
    const tls_context context = serving();
    net::tcp_listener listener(loopback());
    task_group connections;
    auto server = spawn([&] {
      listener.serve(connections, [&](net::tcp_stream& tcp) {
        tls_stream<net::tcp_stream> secure(tcp, context);
        std::string header = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: \r\n\r\n";
        header.insert(header.size() - 4, 4096 - 2 - header.size(), 'x');  // the client reads 4096 bytes at a time
        char data[1000];
        while (secure.read_some(data, sizeof data) > 0)
          secure.write(header + "hi" + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
      });
    });
    http::client client({.tls = http::over_tls(trusting())});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("https://" + listener.local_endpoint().str()).body(), "hi");
    client.close_idle();
    listener.close();
    server.get();
  });
}

// A body up to the end of the connection that an attacker cuts is no whole body.
TEST_P(HttpTls, NoticesACut) {
  in_runtime([] {
    const tls_context context = serving();
    net::tcp_listener listener(loopback());
    auto server = spawn([&] {
      net::tcp_stream tcp = listener.accept();
      tls_stream<net::tcp_stream> secure(tcp, context);
      char data[1000];
      secure.read_some(data, sizeof data);
      secure.write("HTTP/1.0 200 OK\r\n\r\nhalf");
      tcp.shutdown_write();
      while (tcp.read_some(data, sizeof data) > 0) {
      }
    });
    http::client client({.tls = http::over_tls(trusting())});
    const std::string why = failure_of([&] { (void)client.get("https://" + listener.local_endpoint().str()); });
    EXPECT_EQ(why, "reading the answer: Software caused connection abort");
    server.get();
  });
}

}  // namespace
