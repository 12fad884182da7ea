// TLS over streams, also with the peers that OpenSSL ships.

#include "net_fixture.hpp"

#include "support/watchdog.hpp"

#include <ulexite/interop/tls.hpp>
#include <ulexite/net/buffered.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>

namespace ulexite::test {
namespace {

// A key, and a certificate for "localhost" and 127.0.0.1 that it has signed itself, as files.
class identity {
 public:
  identity() : certificate(scratch_path("certificate.pem")), key(scratch_path("key.pem")) {
    char curve[] = "P-256";
    EVP_PKEY* const pair = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve);
    X509* const made = X509_new();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, pair);
    X509_NAME* const name = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
    X509_set_issuer_name(made, name);
    X509_EXTENSION* const names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    X509_add_ext(made, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(made, pair, EVP_sha256());
    std::FILE* file = std::fopen(certificate.c_str(), "w");
    PEM_write_X509(file, made);
    std::fclose(file);
    file = std::fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(made);
    EVP_PKEY_free(pair);
  }
  ~identity() {
    std::filesystem::remove(certificate);
    std::filesystem::remove(key);
  }
  identity(const identity&) = delete;
  identity& operator=(const identity&) = delete;

  const std::string certificate, key;
};

class Tls : public NetTest {
 protected:
  static void SetUpTestSuite() { mine = new identity; }
  static void TearDownTestSuite() { delete std::exchange(mine, nullptr); }

  static tls_context serving() { return tls_context::server(mine->certificate, mine->key); }
  static tls_context trusting() {
    tls_context made = tls_context::client();
    made.trust(mine->certificate);
    return made;
  }

  static inline identity* mine = nullptr;
};
ULEXITE_ON_ALL_WORKER_COUNTS(Tls);

using stream = tls_stream<net::tcp_stream>;

std::string read_to_end(stream& from) {
  std::string all;
  char part[5000];
  while (const std::size_t got = from.read_some(part, sizeof part)) all.append(part, got);
  return all;
}

TEST_P(Tls, CarriesDataBothWays) {
  in_runtime([] {
    for (auto make : {stream_pair::tcp, stream_pair::unix_sockets}) {
      auto pair = make();
      const auto server_side = serving(), client_side = trusting();
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        net::buffered_reader in(secure);
        const auto line = in.read_line();
        EXPECT_EQ(line.value_or(""), "hello");
        EXPECT_EQ(secure.server_name(), "localhost");
        secure.write("you said hello\n");
        secure.shutdown_write();
        EXPECT_EQ(in.read_line(), std::nullopt);
      });
      stream secure(pair.left, client_side, "localhost");
      secure.handshake();
      EXPECT_EQ(secure.version(), "TLSv1.3");
      EXPECT_EQ(secure.alpn(), "");
      secure.write("hello\n");
      EXPECT_EQ(read_to_end(secure), "you said hello\n");
      secure.shutdown_write();
      EXPECT_THROW(secure.write("more"), std::system_error);
      server.get();
    }
  });
}

// Each side writes much while it reads much; a deadlock of the two would be one of the buffers between.
TEST_P(Tls, OneFiberReadsWhileAnotherWrites) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    const std::string much(3'000'000, 'x'), more(2'000'000, 'y');
    const auto both = [](stream& secure, const std::string& out) {
      return std::get<1>(when_all(
          [&] {
            secure.write(out);
            secure.shutdown_write();
          },
          [&] { return read_to_end(secure); }));
    };
    auto server = spawn([&] {
      stream secure(pair.right, server_side);
      return both(secure, more) == much;
    });
    stream secure(pair.left, client_side, "127.0.0.1");
    EXPECT_TRUE(both(secure, much) == more);
    EXPECT_TRUE(server.get());
  });
}

TEST_P(Tls, RefusesCertificatesThatAreNotTrustedOrOfAnother) {
  in_runtime([] {
    const auto server_side = serving();
    const auto attempt = [&](const tls_context& context, const std::string& name) {
      auto pair = stream_pair::tcp();
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        std::error_code error;
        secure.handshake(error);
        char byte;
        if (!error) secure.read_some(&byte, 1, error);
        return error;
      });
      std::string told;
      {
        stream secure(pair.left, context, name);
        try {
          secure.handshake();
        } catch (const std::system_error& failure) {
          EXPECT_EQ(failure.code().category(), tls_category());
          told = failure.what();
          std::error_code again;
          secure.write("x", 1, again);
          EXPECT_EQ(again, failure.code());
        }
      }
      pair.left.close();
      EXPECT_TRUE(server.get());  // an alert, or the end
      return told;
    };
    EXPECT_NE(attempt(tls_context::client(), "localhost").find("self-signed certificate"), std::string::npos);
    EXPECT_NE(attempt(trusting(), "example.org").find("hostname mismatch"), std::string::npos);
    EXPECT_NE(attempt(trusting(), "127.0.0.2").find("IP address mismatch"), std::string::npos);
    EXPECT_EQ(attempt(trusting(), "127.0.0.1"), "");
    tls_context careless = tls_context::client();
    careless.trust_everything();
    EXPECT_EQ(attempt(careless, "example.org"), "");
  });
}

TEST_P(Tls, AgreesOnAProtocol) {
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
TEST_P(Tls, AConnectionKeepsTheProtocolsOfAContextThatHasEnded) {
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

TEST_P(Tls, AWriteAfterTheEndOfWritingFailsAlone) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    client.shutdown_write();
    std::error_code error;
    EXPECT_EQ(client.write_some("x", 1, error), 0U);
    EXPECT_EQ(error, std::errc::broken_pipe) << error.message();
    server.write("answer");
    server.shutdown_write();
    EXPECT_EQ(read_to_end(client), "answer");
  });
}

TEST_P(Tls, AnExpiryOrCancellationLosesNothing) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    char part[100];
    pair.left.expires_after(1ms);
    std::error_code error;
    client.read_some(part, sizeof part, error);
    EXPECT_EQ(error, std::errc::timed_out);
    EXPECT_THROW(client.read_some(part, sizeof part), std::system_error);
    pair.left.expires_never();
    EXPECT_THROW(timeout(1ms, [&] { client.read_some(part, sizeof part); }), deadline_exceeded);
    // The peer does not read: the write is cut in the middle of its records, and the next one goes on.
    const std::string much(20'000'000, 'z');
    std::size_t taken = 0;
    try {
      timeout(20ms, [&] {
        while (taken < much.size()) taken += client.write_some(much.data() + taken, much.size() - taken);
      });
    } catch (const deadline_exceeded&) {
    }
    EXPECT_LT(taken, much.size());
    const auto [rest, got] = when_all(
        [&] {
          client.write(std::string_view(much).substr(taken));
          client.shutdown_write();
        },
        [&] { return read_to_end(server); });
    EXPECT_TRUE(got == much);
  });
}

TEST_P(Tls, AConnectionThatIsCutIsAnError) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    server.write("part");
    pair.right.close();
    char part[100];
    EXPECT_EQ(client.read_some(part, sizeof part), 4U);
    std::error_code error;
    EXPECT_EQ(client.read_some(part, sizeof part, error), 0U);
    EXPECT_EQ(error.category(), tls_category());
    EXPECT_EQ(error, std::errc::connection_aborted);
    EXPECT_NE(error.message().find("unexpected eof"), std::string::npos);

    auto plain = stream_pair::tcp();  // its peer does not speak TLS
    plain.right.write("HTTP/1.0 400 What?\r\n\r\n");
    stream confused(plain.left, client_side, "localhost");
    EXPECT_THROW(confused.handshake(), std::system_error);
    confused.handshake(error);
    EXPECT_NE(error, std::errc::connection_aborted);
  });
}

// OpenSSL would touch a third page. No other fiber has used a stack of this size.
TEST_P(Tls, LeavesTheStackOfItsFiberAlone) {
  if (sanitized) GTEST_SKIP() << "frames are larger";
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    const auto talk = [](stream& secure) {
      secure.write("hello");
      char part[5];
      EXPECT_EQ(secure.read_some(part, sizeof part), 5U);
      secure.shutdown_write();
      EXPECT_EQ(secure.read_some(part, sizeof part), 0U);
      EXPECT_LE(this_fiber::stack().high_water, 8192U);
    };
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    auto other = spawn({.stack_size = 16384}, [&] { talk(server); });
    spawn({.stack_size = 16384}, [&] { talk(client); }).get();
    other.get();
  });
}

TEST_P(Tls, ClientsMayHaveToShowACertificate) {
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

TEST_P(Tls, AClientThatShowsACertificateMayResumeItsSession) {
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

TEST_P(Tls, TalksToOpenssl) {
  in_runtime([] {
    const auto server_side = serving();
    net::tcp_listener listener(loopback());
    auto server = spawn([&] {
      auto client = listener.accept();
      client.expires_after(bound);
      stream secure(client, server_side);
      net::buffered_reader in(secure);
      const auto line = in.read_line();
      secure.write("echo " + std::string(line.value_or("none")) + "\n");
      secure.shutdown_write();
    });
    const std::string command = "(echo hello; sleep 0.2) | openssl s_client -quiet -verify_return_error -CAfile " +
                                mine->certificate + " -connect " + listener.local_endpoint().str() + " 2>&1";
    const auto out = output_of({.arguments = {"sh", "-c", command}, .out = stdio::pipe}).out;
    EXPECT_NE(out.find("echo hello"), std::string::npos) << out;
    server.get();
  });
}

TEST_P(Tls, SaysWhatIsWrongWithFilesAndNames) {
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
