// What a tls_context sets: certificates, protocols, sessions.

#include "tls_fixture.hpp"

#include "support/watchdog.hpp"

#include <ulexite/net/buffered.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <memory>

namespace ulexite::test {
namespace {

class TlsContext : public Tls {};
ULEXITE_ON_ALL_WORKER_COUNTS(TlsContext);

TEST_P(TlsContext, AgreesOnAProtocol) {
  in_runtime([] {
    const auto agreed = [](std::initializer_list<std::string_view> servers,
                           std::initializer_list<std::string_view> clients) -> std::string {
      auto pair = stream_pair::tcp();
      auto server_side = serving(), client_side = trusting();
      server_side.set_alpn(servers);
      client_side.set_alpn(clients);
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        std::error_code error;
        secure.handshake(error);
        return std::string(error ? "" : secure.alpn());
      });
      stream secure(pair.left, client_side, "localhost");
      std::error_code error;
      secure.handshake(error);
      char byte;
      if (!error && clients.size() != 0) pair.left.expires_after(bound);
      if (!error && server.get().empty()) secure.read_some(&byte, 1, error);
      return error ? error.message() : std::string(secure.alpn());
    };
    EXPECT_EQ(agreed({"h2", "http/1.1"}, {"http/1.1", "h2"}), "h2");
    EXPECT_EQ(agreed({"http/1.1"}, {"h2", "http/1.1"}), "http/1.1");
    EXPECT_NE(agreed({"h2"}, {"http/1.1"}).find("no application protocol"), std::string::npos);
    tls_context context = tls_context::client();
    EXPECT_THROW(context.set_alpn({""}), std::invalid_argument);
  });
}

// A server that loads a new certificate ends its old context.
TEST_P(TlsContext, AConnectionKeepsTheProtocolsOfAContextThatHasEnded) {
  in_runtime([] {
    constexpr std::string_view protocol = "a-protocol-whose-name-needs-memory-of-its-own";
    auto pair = stream_pair::tcp();
    auto server_side = std::make_unique<tls_context>(serving());
    auto client_side = trusting();
    server_side->set_alpn({"replaced"});
    server_side->set_alpn({protocol});
    client_side.set_alpn({protocol});
    stream server(pair.right, *server_side), client(pair.left, client_side, "localhost");
    server_side = nullptr;
    const std::string other(protocol.size() + 1, 'x');  // in the memory that the names had
    auto serving = spawn([&] {
      std::error_code error;
      server.handshake(error);
      if (error) pair.right.close();
      return error.message();
    });
    std::error_code error;
    client.handshake(error);
    EXPECT_EQ(serving.get(), std::error_code().message());
    EXPECT_EQ(server.alpn(), protocol);
  });
}

TEST_P(TlsContext, ClientsMayHaveToShowACertificate) {
  in_runtime([] {
    auto server_side = serving();
    server_side.trust(mine->certificate);
    server_side.require_client_certificates();
    for (const bool shows : {true, false}) {
      auto pair = stream_pair::tcp();
      auto client_side = trusting();
      if (shows) client_side.use_certificate(mine->certificate, mine->key);
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        std::error_code error;
        secure.handshake(error);
        if (!error) secure.write("in", 2, error);
        return !error;
      });
      stream secure(pair.left, client_side, "localhost");
      std::error_code error;
      char part[10];
      EXPECT_EQ(secure.read_some(part, sizeof part, error), shows ? 2U : 0U);
      EXPECT_EQ(server.get(), shows);
    }
  });
}

TEST_P(TlsContext, AClientThatShowsACertificateMayResumeItsSession) {
  in_runtime([] {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      auto server_side = serving(), client_side = trusting();
      server_side.trust(mine->certificate);
      server_side.require_client_certificates();
      client_side.use_certificate(mine->certificate, mine->key);
      SSL_CTX_set_max_proto_version(client_side.native_handle(), version);
      SSL_SESSION* kept = nullptr;
      for (const bool again : {false, true}) {
        auto pair = stream_pair::tcp();
        auto server = spawn([&] {
          stream secure(pair.right, server_side);
          std::error_code error;
          secure.handshake(error);
          if (!error) secure.write("in", error);
          if (!error) secure.shutdown_write(error);
          if (error) pair.right.close();
          return error.message();
        });
        stream secure(pair.left, client_side, "localhost");
        if (kept) SSL_set_session(secure.native_handle(), kept);
        std::error_code error;
        char part[10];
        EXPECT_EQ(secure.read_some(part, sizeof part, error), 2U) << error.message();
        EXPECT_EQ(server.get(), std::error_code().message());
        EXPECT_EQ(SSL_session_reused(secure.native_handle()), again ? 1 : 0);
        SSL_SESSION_free(std::exchange(kept, SSL_get1_session(secure.native_handle())));
        secure.shutdown_write(error);
      }
      SSL_SESSION_free(kept);
    }
  });
}

// As RFC 9525 says, and curl: the last dot of a name is none of its letters, a dot in front does not stand for any
// host, and a certificate's subject names no server.
TEST_P(TlsContext, ServersAreNamedByTheAlternativeNamesOfTheirCertificates) {
  in_runtime([] {
    const identity wild("DNS:*.example.org"), nameless(nullptr);
    const auto handshake = [](const identity& its, const std::string& name) {
      auto pair = stream_pair::tcp();
      const auto server_side = tls_context::server(its.certificate, its.key);
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        std::error_code error;
        secure.handshake(error);
      });
      tls_context trusting = tls_context::client();
      trusting.trust(its.certificate);
      std::error_code error;
      try {
        stream(pair.left, trusting, name).handshake(error);
      } catch (const std::invalid_argument&) {
        error = std::make_error_code(std::errc::invalid_argument);
      }
      pair.left.close();
      server.join();
      return error;
    };
    EXPECT_EQ(handshake(wild, "a.example.org"), std::error_code());
    EXPECT_EQ(handshake(wild, "a.example.org."), std::error_code());
    EXPECT_EQ(handshake(*mine, "localhost."), std::error_code());
    EXPECT_EQ(handshake(wild, "example.org").category(), tls_category());
    EXPECT_EQ(handshake(nameless, "localhost").category(), tls_category());
    for (const char* none :
         {".example.org", "a..example.org", ".", "", "a b", "https://a.example.org", "a.example.org:443", "[::1]",
          "127.0.0.1 a.example.org", " 127.0.0.1", "127.0.0.1 ", "+127.0.0.1", "::1 ", "127.0.0.1:443"})
      EXPECT_EQ(handshake(wild, none), std::errc::invalid_argument) << none;
  });
}

TEST_P(TlsContext, SaysWhatIsWrongWithFilesAndNames) {
  const auto told = [](auto&& function) -> std::string {
    try {
      function();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(told([] { (void)tls_context::server("/none.pem", "/none.key"); }).find("\"/none.pem\""), std::string::npos);
  EXPECT_NE(told([] { (void)tls_context::server(mine->certificate, "/none.key"); }).find("\"/none.key\""),
            std::string::npos);
  EXPECT_NE(told([] { tls_context::client().trust(mine->key); }).find(mine->key), std::string::npos);
  net::tcp_stream none;
  const auto context = tls_context::client();
  EXPECT_NE(told([&] { stream made(none, context, std::string("a\0b", 3)); }).find("is not the name of a server"),
            std::string::npos);
  const std::string hidden("127.0.0.1\0.example.org", 22);
  EXPECT_NE(told([&] { stream made(none, context, hidden); }).find("is not the name of a server"), std::string::npos);
  EXPECT_NE(told([&] { stream made(none, context, ""); }).find("is not the name of a server"), std::string::npos);
  stream unconnected(none, context, "localhost");
  std::error_code error;
  unconnected.handshake(error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace ulexite::test
