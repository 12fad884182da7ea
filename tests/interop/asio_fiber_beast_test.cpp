// Boost.Beast's asynchronous operations in fibers.

#include "interop/asio_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <string>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

class AsioFiberBeast : public AsioTest {};
ULEXITE_TEST_WORKERS(AsioFiberBeast);

// Answers requests of one client until it leaves. The target /silence gets no answer.
void answer(tcp::socket socket) {
  beast::flat_buffer buffer(4096);
  for (;;) {
    http::request<http::string_body> request;
    boost::system::error_code error;
    http::async_read(socket, buffer, request, use_fiber(error));
    if (error) return;
    if (request.target() == "/silence") continue;
    http::response<http::string_body> response(http::status::ok, 11);
    response.body() = "you asked for " + std::string(request.target());
    response.prepare_payload();
    http::async_write(socket, response, use_fiber);
  }
}

TEST_P(AsioFiberBeast, CarriesHttp) {
  run([&] {
    tcp::acceptor acceptor(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    task_group group;
    group.spawn([&] {
      for (int client = 0; client < 3; ++client)
        group.spawn([socket = acceptor.async_accept(use_fiber)]() mutable { answer(std::move(socket)); });
    });
    for (int client = 0; client < 3; ++client) {
      group.spawn([&, client] {
        beast::tcp_stream stream(io_);
        beast::flat_buffer buffer(4096);
        stream.async_connect(acceptor.local_endpoint(), use_fiber);
        const auto ask = [&](const std::string& target) {
          http::request<http::empty_body> request(http::verb::get, target, 11);
          http::async_write(stream, request, use_fiber);
          http::response<http::string_body> response;
          http::async_read(stream, buffer, response, use_fiber);
          return response.body();
        };
        for (int i = 0; i < 5; ++i) {
          const std::string target = "/" + std::to_string(client) + "/" + std::to_string(i);
          EXPECT_EQ(ask(target), "you asked for " + target);
        }
        EXPECT_THROW(timeout(2ms, [&] { ask("/silence"); }), deadline_exceeded);
      });
    }
    group.wait();
  });
}

}  // namespace
